// bench_command: products beside cuBLASLt, in one process and in turns.
//
// A product is verified first: the time of a wrong one is no time.
#include "bench_chart.h"
#include "bench_report.h"
#include "commands.h"
#include "gemm_options.h"
#include "gemm_sets.h"
#include "output_file.h"
#include "problem_list.h"
#include "progress.h"

#include <kiln/compile.h>
#include <kiln/cublas.h>
#include <kiln/file.h>
#include <kiln/gpu_clock.h>
#include <kiln/measure.h>
#include <kiln/sim.h>

#include <fmt/format.h>

namespace kiln::cli {

namespace {

struct BenchCommand {
  GemmOptions gemm;
  std::vector<std::string> what; ///< gemm M N K, M N K ...
  ProblemList problems;
  std::string json_path, chart_path, against_path;
  std::string device = "cuda";
  std::uint64_t data_seed = 0;
  int rounds = BenchPlan().rounds, best_of = 64;
  double pause_ms = 200, burst_ms = 10, settle_s = 3;
  bool is_unverified = false;
};

/// What a bench holds on to while it runs.
struct Bench {
  const BenchCommand &command;
  std::shared_ptr<Device> device;
  std::shared_ptr<CublasLt> cublas; ///< null where there is none
  Stopwatch watch;
  BenchPlan plan;
  std::unique_ptr<GpuClock> clock;
};

} // namespace

/// The problems of the command line.
static std::vector<ListedProblem> problems_of(const BenchCommand &command) {
  if (command.what.front() != "gemm")
    throw UserError(fmt::format("'{}' is nothing to measure; bench takes gemm",
                                command.what.front()));
  ProblemList list = command.problems;
  list.words.assign(command.what.begin() + 1, command.what.end());
  return list.read(command.gemm);
}

/// cuBLASLt's first choice, and the fastest of those asked for, where that is
/// another. Says why where there is none.
static void add_cublas(Bench &bench, const GemmSets &sets,
                       std::vector<Contender> &contenders,
                       ProblemResult &result) {
  if (!bench.cublas)
    return;
  try {
    auto plans = bench.cublas->plans(sets.gemm(), bench.command.best_of);
    contenders.push_back(sets.contender("cublaslt", plans.front()));
    std::size_t best = 0;
    double best_us = 0;
    for (std::size_t i = 0; i < plans.size() && plans.size() > 1; ++i) {
      Contender one = sets.contender("", plans[i]);
      double us =
          bench.watch.burst(one, bench.watch.launches_for(one, bench.plan));
      if (i == 0 || us < best_us)
        best = i, best_us = us;
    }
    if (best != 0)
      contenders.push_back(sets.contender(
          fmt::format("cublaslt best of {}", plans.size()), plans[best]));
  } catch (const UserError &error) {
    result.note = error.message();
  }
}

/// Take times, and the clock behind each burst.
static std::vector<Samples> measure(
    Bench &bench, const std::vector<Contender> &contenders,
    std::vector<Samples> (*take)(Stopwatch &, const std::vector<Contender> &,
                                 const BenchPlan &),
    std::vector<Samples> &mhz) {
  mhz.assign(contenders.size(), {});
  BenchPlan plan = bench.plan;
  plan.after_burst = [&](std::size_t i) {
    if (auto now = bench.clock->mhz())
      mhz[i].push_back(*now);
  };
  return take(bench.watch, contenders, plan);
}

static ProblemResult run_problem(Bench &bench, const ListedProblem &entry) {
  const GemmOptions &options = bench.command.gemm;
  const GemmProblem &sized = entry.problem;
  ProblemResult result;
  result.problem = sized;
  result.suite = entry.suite;
  GemmProblem problem = options.with_arguments(sized);
  const DeviceDescription &device = options.built_for(bench.device.get());
  result.schedule = options.fitted_schedule(sized, device);
  Kernel kernel = compile(build_gemm(problem, result.schedule, {}, device));
  result.kernel = kernel.name;
  GemmSets sets(*bench.device, options.reference(sized), sized.has_beta,
                bench.command.data_seed);
  result.operations = sets.operations();
  result.buffer_sets = sets.count();

  std::vector<Contender> contenders = {sets.contender("kiln", kernel)};
  add_cublas(bench, sets, contenders, result);
  if (!bench.command.is_unverified) {
    for (const Contender &contender : contenders)
      result.comparisons.push_back(sets.verify(contender));
    if (!result.comparisons.front().ok)
      return result;
  }
  for (const Contender &contender : contenders)
    result.contenders.push_back(contender.name);
  result.rested = measure(bench, contenders, measure_rested, result.rested_mhz);
  result.sustained =
      measure(bench, contenders, measure_sustained, result.sustained_mhz);
  return result;
}

/// 1 of "cuda:1"; open_device has refused what is none.
static int device_number(const std::string &device) {
  std::size_t colon = device.find(':');
  return colon == std::string::npos ? 0 : std::atoi(&device[colon + 1]);
}

static Bench open_bench(const BenchCommand &command, BenchReport &report) {
  if (!command.device.starts_with("cuda"))
    throw UserError(fmt::format("times are taken on a GPU; --device takes cuda "
                                "or cuda:1, not {}",
                                command.device));
  if (command.rounds < 1 || command.best_of < 1 || command.pause_ms < 0 ||
      command.burst_ms < 0 || command.settle_s < 0)
    throw UserError(fmt::format(
        "--rounds {}, --best-of {}, --pause-ms {}, --burst-ms {}, --settle-s "
        "{}: the first two must be at least 1, the others not negative",
        command.rounds, command.best_of, command.pause_ms, command.burst_ms,
        command.settle_s));
  std::shared_ptr<Device> device = open_device(command.device);
  std::shared_ptr<CublasLt> cublas;
  try {
    cublas = open_cublaslt(*device);
    report.cublas_version = cublas->version();
  } catch (const RuntimeError &error) {
    report.cublas_missing = error.message();
  }
  report.machine = device->name();
  auto milliseconds = [](double ms) {
    return std::chrono::milliseconds(static_cast<std::int64_t>(ms));
  };
  BenchPlan plan{.rounds = command.rounds,
                 .pause = milliseconds(command.pause_ms),
                 .burst = milliseconds(command.burst_ms),
                 .settle = milliseconds(1e3 * command.settle_s)};
  auto clock = std::make_unique<GpuClock>(device_number(command.device));
  return {command, device, cublas, Stopwatch(*device), plan, std::move(clock)};
}

static ExitStatus run_command(const BenchCommand &command) {
  std::vector<ListedProblem> problems = problems_of(command);
  check_output("--json", command.json_path);
  check_output("--chart", command.chart_path);
  std::optional<StoredRun> before;
  if (!command.against_path.empty())
    before = StoredRun::read(command.against_path);
  BenchReport report;
  Bench bench = open_bench(command, report);
  report.print_header();
  for (const ListedProblem &entry : problems) {
    show_progress(report.results.size(), problems.size(),
                  entry.problem.to_string());
    report.results.push_back(run_problem(bench, entry));
    end_progress();
    report.results.back().print();
  }
  report.print_summary();
  if (before)
    report.print_against(*before);
  Outputs outputs;
  if (!command.chart_path.empty())
    outputs.attempt(
        [&] { write_file(command.chart_path, {ratio_chart(report)}); });
  if (!command.json_path.empty())
    outputs.attempt([&] { report.write_json(command.json_path); });
  return outputs.conclude(report.is_right() ? ExitStatus::ok
                                            : ExitStatus::wrong);
}

void add_bench_command(CLI::App &app, Action &action) {
  CLI::App *command =
      app.add_subcommand("bench", "measure products beside cuBLASLt, on a GPU");
  auto options = std::make_shared<BenchCommand>();
  command
      ->add_option("what", options->what,
                   "gemm M N K, or several M N K with commas between")
      ->required()
      ->expected(1, -1);
  options->gemm.add_to(*command);
  options->problems.add_to(*command);
  command->add_option("--json", options->json_path,
                      "write every sample to this file");
  command->add_option("--chart", options->chart_path,
                      "draw the ratios as SVG to this file");
  command->add_option("--against", options->against_path,
                      "compare with a run that --json has stored");
  command->add_option("--device", options->device, "cuda or cuda:1")
      ->capture_default_str();
  command
      ->add_option("--best-of", options->best_of,
                   "ways of cuBLASLt to try, of which the fastest counts")
      ->capture_default_str();
  command->add_option("--rounds", options->rounds, "samples of each")
      ->capture_default_str();
  command->add_option("--pause-ms", options->pause_ms, "before each burst")
      ->capture_default_str();
  command->add_option("--burst-ms", options->burst_ms, "how long one takes")
      ->capture_default_str();
  command
      ->add_option("--settle-s", options->settle_s,
                   "work before sustained times are taken")
      ->capture_default_str();
  command->add_option("--data-seed", options->data_seed, "of the numbers")
      ->capture_default_str();
  command->add_flag("--no-verify", options->is_unverified,
                    "do not compare with the reference first");
  command->callback([&action, options] {
    action = [options] { return run_command(*options); };
  });
}

} // namespace kiln::cli
