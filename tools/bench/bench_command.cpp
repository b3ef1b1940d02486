// bench_command: products beside cuBLASLt, in one process and in turns.
#include "bench_run.h"
#include "commands.h"
#include "kernels/gemm_options.h"
#include "kernels/gemm_sets.h"
#include "problem_list.h"
#include "console/say.h"

#include <kiln/run/compile.h>
#include <kiln/measure/cublas.h>
#include <kiln/measure/measure.h>
#include <kiln/check/sim.h>

#include <fmt/format.h>

namespace kiln::cli {

namespace {

struct BenchCommand {
  GemmOptions gemm;
  std::vector<std::string> what; ///< gemm M N K, M N K ...
  ProblemList problems;
  int best_of = 64;
  BenchFlags flags;
  bool is_dry = false; ///< list what would be measured
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
/// another. Throws UserError where there is none.
static void add_cublas(BenchRun &bench, CublasLt &cublas, int best_of,
                       const GemmSets &sets,
                       std::vector<Contender> &contenders) {
  auto plans = cublas.plans(sets.gemm(), best_of);
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
}

static ProblemResult run_problem(BenchRun &bench, CublasLt *cublas,
                                 const BenchCommand &command,
                                 const ListedProblem &entry) {
  const GemmOptions &options = command.gemm;
  const GemmProblem &sized = entry.problem;
  ProblemResult result;
  result.problem = sized.to_string();
  result.suite = entry.suite;
  GemmProblem problem = options.with_arguments(sized);
  const DeviceDescription device = options.built_for(bench.device.get());
  GemmSchedule schedule = options.fitted_schedule(sized, device);
  result.schedule = schedule.to_string();
  GemmSets sets(*bench.device, options.reference(sized), sized.has_beta,
                command.flags.data_seed);
  result.operations = sets.operations();
  result.bytes = sets.bytes();
  // Where bytes rule: many of them, and few operations on each.
  constexpr double kManyBytes = 100e6, kFewOperations = 150;
  if (result.bytes >= kManyBytes &&
      result.operations < kFewOperations * result.bytes)
    result.copy_gb_per_s = bench.copy_gb_per_s();
  bench.measure(
      sets, compile(build_gemm(problem, schedule, {}, device)),
      [&](std::vector<Contender> &contenders) {
        if (cublas)
          add_cublas(bench, *cublas, command.best_of, sets, contenders);
      },
      result);
  return result;
}

/// The problems and the schedules they would be computed with.
static ExitStatus list_problems(const BenchCommand &command,
                                const std::vector<ListedProblem> &problems) {
  const DeviceDescription device = command.gemm.built_for(nullptr);
  for (const ListedProblem &one : problems)
    say("{}\n  {}\n", one.problem.to_string(),
        command.gemm.fitted_schedule(one.problem, device).to_string());
  return ExitStatus::ok;
}

static ExitStatus run_command(const BenchCommand &command) {
  if (command.what.empty())
    throw UserError("there is nothing to measure; bench takes gemm, attention, "
                    "grouped-gemm or seeds");
  std::vector<ListedProblem> problems = problems_of(command);
  if (command.is_dry)
    return list_problems(command, problems);
  if (command.best_of < 1)
    throw UserError(
        fmt::format("--best-of {}; it must be at least 1", command.best_of));
  std::shared_ptr<CublasLt> cublas;
  std::vector<BenchEntry> entries;
  for (const ListedProblem &problem : problems)
    entries.push_back({problem.problem.to_string(), [&](BenchRun &bench) {
                         return run_problem(bench, cublas.get(), command,
                                            problem);
                       }});
  return run_bench(command.flags, entries,
                   [&](Device &device, BenchReport &report) {
                     cublas = open_cublaslt(device);
                     report.library_version = cublas->version();
                   });
}

void add_bench_command(Command app, Action &action) {
  Command command = app.add_subcommand(
      "bench", "measure beside cuBLASLt and cuDNN, on a GPU");
  auto options = std::make_shared<BenchCommand>();
  command
      .add_option("what", options->what,
                  "gemm M N K, or several M N K with commas between")
      .expected(1, -1);
  options->gemm.add_to(command);
  options->problems.add_to(command);
  command
      .add_option("--best-of", options->best_of,
                  "ways of cuBLASLt to try, of which the fastest counts")
      .capture_default_str();
  command.add_flag("--dry-run", options->is_dry,
                   "list what would be measured, and stop");
  options->flags.add_to(command);
  add_bench_attention(command, action);
  add_bench_grouped_gemm(command, action);
  add_bench_seeds(command, action);
  command.callback([&action, command, options] {
    if (!command.has_subcommand())
      action = [options] { return run_command(*options); };
  });
}

} // namespace kiln::cli
