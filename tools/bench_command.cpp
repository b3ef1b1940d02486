// bench_command: products beside cuBLASLt, in one process and in turns.
//
// A product is verified first: the time of a wrong one is no time.
#include "bench_chart.h"
#include "bench_report.h"
#include "bench_suites.h"
#include "commands.h"
#include "gemm_matrices.h"
#include "gemm_options.h"
#include "output_file.h"

#include <kiln/compile.h>
#include <kiln/cublas.h>
#include <kiln/file.h>
#include <kiln/gpu_clock.h>
#include <kiln/measure.h>
#include <kiln/sim.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sstream>
#include <unistd.h>

namespace kiln::cli {

namespace {

struct BenchCommand {
  GemmOptions gemm;
  std::vector<std::string> what; ///< gemm M N K, M N K ...
  std::vector<std::string> suites;
  std::string problems_path, json_path, chart_path, against_path;
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

/// A problem to measure, and the suite it is from.
struct Entry {
  GemmProblem problem;
  std::string suite;
};

} // namespace

/// "4096 4096 4096 f16" and "4096x4096x4096 f16" in the second form.
static std::pair<std::string, std::string>
sizes_and_words(const std::string &line) {
  std::istringstream words(line.substr(0, line.find('#')));
  std::string first, second, third, rest;
  words >> first;
  if (!first.empty() && first.find('x') == std::string::npos &&
      words >> second >> third)
    first = fmt::format("{}x{}x{}", first, second, third);
  std::getline(words, rest);
  return {first, rest};
}

/// The problems of the command line, of --suite and of --problems, in this
/// order.
static std::vector<Entry> problems_of(const BenchCommand &command) {
  std::vector<Entry> problems;
  auto add = [&](const std::string &line) {
    auto [sizes, words] = sizes_and_words(line);
    if (!sizes.empty())
      problems.push_back({command.gemm.sized_problem(sizes, words), ""});
  };
  if (command.what.front() != "gemm")
    throw UserError(fmt::format("'{}' is nothing to measure; bench takes gemm",
                                command.what.front()));
  std::istringstream triples(fmt::format(
      "{}", fmt::join(command.what.begin() + 1, command.what.end(), " ")));
  for (std::string triple; std::getline(triples, triple, ',');)
    add(triple);
  for (const std::string &suite : command.suites)
    for (const SuiteProblem &one : problems_of_suite(suite))
      problems.push_back(
          {GemmProblem::parse(one.problem), std::string(one.suite)});
  if (!command.problems_path.empty()) {
    std::istringstream file(read_file(command.problems_path));
    for (std::string line; std::getline(file, line);)
      add(line);
  }
  if (problems.empty())
    throw UserError("there is no problem; write M N K, or several with commas "
                    "between, or name a suite with --suite or a file with "
                    "--problems");
  return problems;
}

/// Normally distributed numbers, as weights and activations are.
static void fill_matrices(const ReferenceGemm &gemm, std::uint64_t seed,
                          GemmMatrices &host) {
  auto count = [](std::int64_t n) { return static_cast<std::size_t>(n); };
  fill_normal(gemm.type, host.a.data(), count(gemm.a_elements()), seed);
  fill_normal(gemm.type, host.b.data(), count(gemm.b_elements()), seed + 1);
  if (!host.c.empty())
    fill_normal(gemm.out, host.c.data(), count(gemm.c_elements()), seed + 2);
}

static std::size_t bytes_of(const GemmMatrices &host) {
  return host.a.size() + host.b.size() + host.c.size() + host.bias.size() +
         host.d.size();
}

static CublasOperands operands_of(const GemmBuffers &buffers) {
  return {buffers.a, buffers.b, buffers.c, buffers.bias, buffers.d};
}

/// One launch of a plan on each set.
static Contender contender_of(std::string name,
                              const std::shared_ptr<CublasPlan> &plan,
                              const std::vector<GemmBuffers> &sets) {
  Contender contender{std::move(name), {}};
  for (const GemmBuffers &buffers : sets)
    contender.launches.push_back(
        [plan, operands = operands_of(buffers)](const Stream &stream) {
          plan->enqueue(operands, stream);
        });
  return contender;
}

static Contender contender_of(const Kernel &kernel, const ReferenceGemm &gemm,
                              Device &device,
                              const std::vector<GemmBuffers> &sets) {
  Contender contender{"kiln", {}};
  for (const GemmBuffers &buffers : sets)
    contender.launches.push_back(
        device.prepare(resolve(kernel, launch_arguments(kernel, gemm, buffers),
                               device.description())));
  return contender;
}

/// cuBLASLt's first choice, and the fastest of those asked for, where that is
/// another. Says why where there is none.
static void add_cublas(Bench &bench, const ReferenceGemm &gemm,
                       const std::vector<GemmBuffers> &sets,
                       std::vector<Contender> &contenders,
                       ProblemResult &result) {
  if (!bench.cublas)
    return;
  try {
    auto plans = bench.cublas->plans(gemm, bench.command.best_of);
    contenders.push_back(contender_of("cublaslt", plans.front(), sets));
    std::size_t best = 0;
    double best_us = 0;
    for (std::size_t i = 0; i < plans.size() && plans.size() > 1; ++i) {
      Contender one = contender_of("", plans[i], sets);
      double us =
          bench.watch.burst(one, bench.watch.launches_for(one, bench.plan));
      if (i == 0 || us < best_us)
        best = i, best_us = us;
    }
    if (best != 0)
      contenders.push_back(contender_of(
          fmt::format("cublaslt best of {}", plans.size()), plans[best], sets));
  } catch (const UserError &error) {
    result.note = error.message();
  }
}

/// Run a contender on the first set and compare what it wrote.
static Comparison verify(Bench &bench, const Contender &contender,
                         const ReferenceGemm &gemm, GemmMatrices &host,
                         const GemmBuffers &buffers) {
  std::fill(host.d.begin(), host.d.end(), std::byte{*gemm.poison});
  bench.device->copy_in(buffers.d, host.d.data(), host.d.size());
  contender.launches.front()({});
  bench.device->copy_out(host.d.data(), buffers.d, host.d.size());
  bench.device->synchronize();
  return compare_gemm(gemm, host.d.data());
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

static ProblemResult run_problem(Bench &bench, const Entry &entry) {
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
  ReferenceGemm gemm = options.reference(sized);
  result.operations = 2.0 * static_cast<double>(gemm.batch) *
                      static_cast<double>(gemm.m) *
                      static_cast<double>(gemm.n) * static_cast<double>(gemm.k);
  GemmMatrices host(gemm, sized.has_beta, bench.command.data_seed);
  fill_matrices(gemm, bench.command.data_seed, host);
  gemm = host.of(gemm);
  result.buffer_sets = buffer_sets(bytes_of(host), bench.device->description());
  std::vector<GemmBuffers> sets;
  for (int i = 0; i < result.buffer_sets; ++i)
    sets.push_back(copy_in(*bench.device, host));

  std::vector<Contender> contenders = {
      contender_of(kernel, gemm, *bench.device, sets)};
  add_cublas(bench, gemm, sets, contenders, result);
  if (!bench.command.is_unverified) {
    for (const Contender &contender : contenders)
      result.comparisons.push_back(
          verify(bench, contender, gemm, host, sets.front()));
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

/// "[##......] 3 of 12: 4096x4096x4096", where somebody looks.
static void show_progress(std::size_t done, std::size_t all,
                          const GemmProblem &problem) {
  constexpr std::size_t kWidth = 24;
  if (!isatty(STDERR_FILENO))
    return;
  std::string bar(kWidth * done / all, '#');
  fmt::print(stderr, "\r\x1b[K[{:.<{}}] {} of {}: {}\r", bar, kWidth, done + 1,
             all, problem.to_string());
  std::fflush(stderr);
}

static ExitStatus run_command(const BenchCommand &command) {
  std::vector<Entry> problems = problems_of(command);
  check_output("--json", command.json_path);
  check_output("--chart", command.chart_path);
  std::optional<StoredRun> before;
  if (!command.against_path.empty())
    before = StoredRun::read(command.against_path);
  BenchReport report;
  Bench bench = open_bench(command, report);
  report.print_header();
  for (const Entry &entry : problems) {
    show_progress(report.results.size(), problems.size(), entry.problem);
    report.results.push_back(run_problem(bench, entry));
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
  command->add_option("--problems", options->problems_path,
                      "a file with a problem on each line: M N K and words "
                      "such as bf16 -> bf16 nt beta");
  command->add_option("--suite", options->suites,
                      "a list of problems by name: " + suite_names());
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
