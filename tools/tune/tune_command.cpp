// tune_command: measure schedules and keep the fastest; what the choice of one
// rests on.
#include "commands.h"
#include "console/output_file.h"
#include "bench/problem_list.h"
#include "console/progress.h"
#include "console/say.h"
#include "tune_commands.h"
#include "tuner.h"

#include <kiln/run/environment.h>
#include <kiln/check/sim.h>
#include <kiln/run/open_device.h>
#include <kiln/kernels/tuning.h>

#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <set>

namespace kiln::cli {

namespace {

struct TuneCommand {
  GemmOptions gemm;
  ProblemList problems;
  std::string shard = "1/1", database, schedules_path;
  std::string timings_path, json_path;
  std::string device = "cuda";
  TunePlan plan;
  int rounds = 5;
  double pause_ms = 100, burst_ms = 4;
  bool is_unverified = false, is_again = false;
};

struct ExplainOptions {
  GemmOptions gemm;
  std::string device = "h200";
  int most = 10;
};

/// What came of all problems.
struct TuneReport {
  std::vector<TuneResult> results;
  double ratio_log = 0; ///< sum over those that `auto` had an answer to
  int ratios = 0, skipped = 0;
  ExitStatus status = ExitStatus::ok; ///< the first that is not

  void fail(ExitStatus why) {
    if (status == ExitStatus::ok)
      status = why;
  }
};

} // namespace

/// The part i of n of "i/n".
static std::pair<std::size_t, std::size_t>
parse_shard(const std::string &text) {
  std::size_t part = 0, parts = 0;
  const char *end = text.data() + text.size();
  auto [slash, error] = std::from_chars(text.data(), end, part);
  if (error == std::errc() && slash != end && *slash == '/') {
    auto [stop, second] = std::from_chars(slash + 1, end, parts);
    if (second == std::errc() && stop == end && part >= 1 && part <= parts)
      return {part, parts};
  }
  throw UserError(fmt::format("--shard is '{}'; write i/n with i from 1 to n, "
                              "for example 1/4",
                              text));
}

/// This shard's problems, each once.
static std::vector<GemmProblem> problems_of(const TuneCommand &command) {
  auto [part, parts] = parse_shard(command.shard);
  std::set<std::string> seen;
  std::vector<GemmProblem> problems;
  for (const ListedProblem &one : command.problems.read(command.gemm))
    if (seen.insert(one.problem.to_string()).second &&
        seen.size() % parts == part % parts)
      problems.push_back(one.problem);
  return problems;
}

std::string chosen_database(const std::string &asked) {
  std::string path = asked.empty() ? tuning_database_path() : asked;
  if (path.empty())
    throw UserError(
        "there is no tuning database: KILN_TUNE_DB is off, or there "
        "is no cache whose folder it could be in; name one with "
        "--database FILE");
  return path;
}

static std::unique_ptr<Tuner> open_tuner(const TuneCommand &command,
                                         std::vector<GemmProblem> problems) {
  if (!command.timings_path.empty())
    return make_replay_tuner(command.timings_path, command.gemm,
                             std::move(problems));
  if (!command.device.starts_with("cuda"))
    throw UserError(fmt::format("times are taken on a GPU; --device takes cuda "
                                "or cuda:1, not {}; --timings FILE replays "
                                "those that were recorded",
                                command.device));
  cache_info(); // one that cannot be is told here, not for each kernel
  auto milliseconds = [](double ms) {
    return std::chrono::milliseconds(static_cast<std::int64_t>(ms));
  };
  TunePlan plan = command.plan;
  if (!command.schedules_path.empty())
    plan.asked = read_schedules(command.schedules_path);
  plan.is_verified = !command.is_unverified;
  plan.bench.rounds = command.rounds;
  plan.bench.pause = milliseconds(command.pause_ms);
  plan.bench.burst = milliseconds(command.burst_ms);
  return make_gpu_tuner(open_device(command.device), command.gemm,
                        std::move(problems), plan);
}

static void check_numbers(const TuneCommand &command) {
  if (command.rounds < 1 || command.plan.most < 0 || command.pause_ms < 0 ||
      command.burst_ms < 0 || command.plan.refinements < 0)
    throw UserError(fmt::format(
        "--rounds {}, --most {}, --refine {}, --pause-ms {}, --burst-ms {}: "
        "the first must be at least 1, the others not negative",
        command.rounds, command.plan.most, command.plan.refinements,
        command.pause_ms, command.burst_ms));
}

static void print(const TuneResult &result) {
  say("\n{}\n{:>10} {:>10}  {}\n", result.problem.to_string(), "us",
      "predicted", "schedule");
  for (const TuneCandidate &one : result.candidates) {
    auto cell = [](double us) {
      return us > 0 ? fmt::format("{:.2f}", us) : "-";
    };
    say("{:>10} {:>10}  {}{}{}\n", cell(one.us), cell(one.predicted_us),
        one.schedule.to_string(), one.is_auto ? " (auto's)" : "",
        one.note.empty() ? "" : "; " + one.note);
  }
}

/// Keep the fastest of a problem's schedules.
static void keep(const TuneResult &result, const Tuner &tuner,
                 TuningDatabase &database, TuneReport &report) {
  const TuneCandidate *winner = result.winner();
  if (!winner) {
    say("nothing is kept: no schedule could be timed and gave the right "
        "product\n");
    return report.fail(ExitStatus::wrong);
  }
  int timed = 0;
  for (const TuneCandidate &one : result.candidates)
    timed += one.us > 0;
  database.put({.device = tuner.device().name,
                .kernels = std::string(gemm_family()),
                .problem = result.problem.to_string(),
                .schedule = winner->schedule.to_string(),
                .us = winner->us,
                .candidates = timed});
  std::string gain;
  if (const TuneCandidate *before = result.chosen_before()) {
    double ratio = before->us / winner->us;
    gain = fmt::format(", {:.3f} times as fast as what auto took", ratio);
    report.ratio_log += std::log(ratio);
    ++report.ratios;
  }
  say("kept {}: {:.2f} us{}\n", winner->schedule.to_string(), winner->us, gain);
}

/// Tune one problem; what goes wrong with it is said, and the others go on.
static void tune_problem(const TuneCommand &command, Tuner &tuner,
                         const std::vector<GemmProblem> &problems,
                         std::size_t number, TuningDatabase &database,
                         TuneReport &report) {
  std::string words = command.gemm.with_arguments(problems[number]).to_string();
  show_progress(number, problems.size(), words);
  try {
    auto known = database.find(tuner.device().name, gemm_family(), words);
    if (known && !command.is_again) {
      ++report.skipped;
      end_progress();
      return say("\n{}\nis there: {}, {:.2f} us\n", words, known->schedule,
                 known->us);
    }
    report.results.push_back(tuner.tune(number));
    end_progress();
    print(report.results.back());
    keep(report.results.back(), tuner, database, report);
  } catch (const Error &error) {
    end_progress();
    say("\n{}\nFAILED: {}\n", words, error.message());
    report.fail(error.exit_status());
  }
  std::fflush(stdout);
}

static ExitStatus tune(const TuneCommand &command) {
  check_numbers(command);
  std::vector<GemmProblem> problems = problems_of(command);
  check_output("--json", command.json_path);
  std::string path = chosen_database(command.database);
  std::unique_ptr<Tuner> tuner = open_tuner(command, problems);
  TuningDatabase database(path, TuningDatabase::Access::write);
  say("{}; {} problem{} of part {}, kept in {}\n", tuner->source(),
      problems.size(), problems.size() == 1 ? "" : "s", command.shard,
      database.path());
  TuneReport report;
  for (std::size_t i = 0; i < problems.size(); ++i)
    tune_problem(command, *tuner, problems, i, database, report);
  say("\n{} tuned, {} there before", report.results.size(), report.skipped);
  if (report.ratios)
    say("; {:.3f} times as fast as what auto took, in the geometric mean",
        std::exp(report.ratio_log / report.ratios));
  say("\n");
  Outputs outputs;
  if (!command.json_path.empty())
    outputs.attempt(
        [&] { write_timings(command.json_path, *tuner, report.results); });
  return outputs.conclude(report.status);
}

static ExitStatus explain(const ExplainOptions &options) {
  if (options.most < 1)
    throw UserError(
        fmt::format("--most {}; at least 1 candidate is shown", options.most));
  GemmProblem problem =
      options.gemm.with_arguments(options.gemm.sized_problem());
  const auto &device = DeviceDescription::by_name(options.device);
  auto ranked = rank_schedules(problem, options.most, device);
  say("{}\n{:>9} {:>9} {:>9} {:>9} {:>9} {:>9}  {}\n", problem.to_string(),
      "total us", "launch", "repack", "tiles", "memory", "store", "schedule");
  for (const RankedSchedule &one : ranked)
    say("{:9.2f} {:9.2f} {:9.2f} {:9.2f} {:9.2f} {:9.2f}  {}\n",
        one.cost.total_us(), one.cost.launch_us, one.cost.repack_us,
        one.cost.tiles_us, one.cost.memory_us, one.cost.store_us,
        one.schedule.to_string());
  if (device.tensor_core != TensorCore::wgmma)
    say("The model was fitted to schedules of wgmma measured on an H200. For "
        "the {} it takes the published clock, bandwidth and rate of {}; "
        "nothing was measured there.\n",
        device.name, name(device.tensor_core));
  return ExitStatus::ok;
}

static void add_explain(Command tune, Action &action) {
  Command command = tune.add_subcommand(
      "explain", "the candidates with their predicted times, best first");
  auto options = std::make_shared<ExplainOptions>();
  command.add_option("sizes", options->gemm.sizes, "M N K")
      .required()
      .expected(3);
  options->gemm.add_problem_to(command);
  command.add_option("--most", options->most, "candidates to show")
      .capture_default_str();
  command
      .add_option("--device", options->device,
                  "the GPU it is predicted for, such as h100 or h200")
      .capture_default_str();
  command.callback(
      [&action, options] { action = [options] { return explain(*options); }; });
}

static void add_measuring(Command command, TuneCommand &options) {
  command.add_option("sizes", options.problems.words,
                     "M N K, or several with commas between");
  options.gemm.add_problem_to(command);
  options.problems.add_to(command);
  command
      .add_option("--shard", options.shard,
                  "the part of the problems to take, i/n: of n, part i from 1 "
                  "on")
      .capture_default_str();
  command.add_option("--database", options.database,
                     "where the fastest are kept; left out: KILN_TUNE_DB");
  command.add_flag("--again", options.is_again,
                   "also measure problems that the database has");
  command
      .add_option("--most", options.plan.most,
                  "candidates of the cost model to measure")
      .capture_default_str();
  command.add_option("--schedules", options.schedules_path,
                     "measure those of this file beside them: one that --json "
                     "has written");
  command
      .add_option("--refine", options.plan.refinements,
                  "times to look at schedules near the fastest")
      .capture_default_str();
  command.add_option("--timings", options.timings_path,
                     "replay times from a file that --json has written");
  command.add_option("--json", options.json_path,
                     "write every time to this file");
  command.add_option("--device", options.device, "cuda or cuda:1")
      .capture_default_str();
  command.add_option("--rounds", options.rounds, "samples of each")
      .capture_default_str();
  command.add_option("--pause-ms", options.pause_ms, "before each burst")
      .capture_default_str();
  command.add_option("--burst-ms", options.burst_ms, "how long one takes")
      .capture_default_str();
  command.add_option("--data-seed", options.plan.data_seed, "of the numbers")
      .capture_default_str();
  command.add_flag("--no-verify", options.is_unverified,
                   "do not compare the fastest with the reference");
}

void add_tune_command(Command app, Action &action) {
  Command command = app.add_subcommand(
      "tune", "measure schedules of products and keep the fastest for auto");
  auto options = std::make_shared<TuneCommand>();
  add_measuring(command, *options);
  add_explain(command, action);
  add_database_commands(command, action);
  add_configs_command(command, action);
  command.callback([&action, command, options] {
    if (!command.has_subcommand())
      action = [options] { return tune(*options); };
  });
}

} // namespace kiln::cli
