// sim_command: any PTX on the simulator, as a launch file describes it.
//
// Findings of the simulator and comparisons with what is expected make the
// verdict; the last line is PASS, FAIL, or DONE where nothing was compared.
#include "buffer_compare.h"
#include "commands.h"
#include "launch_init.h"
#include "npy.h"
#include "console/output_file.h"
#include "console/run_watch.h"
#include "console/say.h"
#include "console/show_findings.h"
#include "options/check_flags.h"
#include "sim_run.h"

#include <kiln/base/file.h>
#include <kiln/check/explanation.h>
#include <kiln/check/report.h>
#include <kiln/check/sim.h>

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>

namespace kiln::cli {

namespace {

struct SimCommand {
  std::string ptx_path;
  std::string launch_path;
  std::string init_path; ///< a launch file to write; empty: none
  std::string save_folder;
  CheckFlags check;
};

/// What a run has left.
struct Outcome {
  SeededInterleaving interleaving;
  std::vector<std::vector<std::byte>> memory; ///< by buffer
  std::vector<std::string> printed;           ///< lines, sorted
};

/// A job while it is explored.
struct Exploring {
  const CheckSettings &settings;
  const SimJob &job;
  const PreparedJob &prepared;
  Report all;
  std::optional<Outcome> first;
};

} // namespace

static std::string by(const std::array<std::uint32_t, 3> &size) {
  return fmt::format("{}", fmt::join(size, "x"));
}

static void report_job(const SimJob &job, const SimOptions &options) {
  report("kernel", "{}", fmt::join(job.ptx_paths, ", "));
  for (const LaunchSpec &launch : job.file.launches)
    report("launch", "{}grid {}, block {}{}{}",
           launch.kernel.empty() ? "" : launch.kernel + ", ", by(launch.grid),
           by(launch.block),
           launch.cluster == std::array<std::uint32_t, 3>{1, 1, 1}
               ? ""
               : ", cluster " + by(launch.cluster),
           launch.dynamic_smem_bytes
               ? fmt::format(", {} bytes of dynamic shared memory",
                             launch.dynamic_smem_bytes)
               : "");
  // The simulator knows buffers by their numbers.
  for (std::size_t i = 0; i < job.file.buffers.size(); ++i) {
    const BufferSpec &buffer = job.file.buffers[i];
    report(fmt::format("buffer {}", i), "{}: {}[{}], {}{}", buffer.name,
           name(buffer.type), fmt::join(buffer.shape, ", "), buffer.init_text,
           buffer.is_output ? ", output" : "");
  }
  report("device", "sim ({}), {} SMs{}", options.device.name,
         options.device.sms, options.checks ? "" : ", checks off");
}

/// Compare the lines the kernel printed, as sorted lists.
static void compare_printed(const SimJob &job, const Outcome &run,
                            Report &all) {
  if (!job.file.printed)
    return;
  const std::vector<std::string> &want = *job.file.printed, &got = run.printed;
  std::vector<std::string> missing, extra;
  std::set_difference(want.begin(), want.end(), got.begin(), got.end(),
                      std::back_inserter(missing));
  std::set_difference(got.begin(), got.end(), want.begin(), want.end(),
                      std::back_inserter(extra));
  all.comparisons.push_back({.what = "printf",
                             .interleaving = run.interleaving.to_string(),
                             .elements = want.size(),
                             .wrong = missing.size() + extra.size()});
  if (!missing.empty())
    report("wrong", "printf: {} lines are missing, the first '{}'",
           missing.size(), missing[0]);
  if (!extra.empty())
    report("wrong", "printf: {} lines are not expected, the first '{}'",
           extra.size(), extra[0]);
  if (missing.empty() && extra.empty())
    report("compared", "printf: {} lines, all right", want.size());
}

static void compare_expected(const SimJob &job, const Outcome &run,
                             Report &all) {
  for (std::size_t i = 0; i < job.file.buffers.size(); ++i) {
    if (!job.expected[i])
      continue;
    const BufferSpec &buffer = job.file.buffers[i];
    BufferComparison result =
        compare_buffer(buffer, run.memory[i], *job.expected[i]);
    all.comparisons.push_back({.what = "buffer",
                               .name = buffer.name,
                               .interleaving = run.interleaving.to_string(),
                               .elements = buffer.count,
                               .wrong = result.wrong});
    for (const std::string &line : result.first)
      report("wrong", "{}", line);
    if (result.wrong)
      report("compared", "{}: {} of {} elements are wrong", buffer.name,
             result.wrong, buffer.count);
    else
      report("compared", "{}: {} elements, all right", buffer.name,
             buffer.count);
  }
  compare_printed(job, run, all);
}

/// Results that depend on the interleaving are a fault where the file says they
/// may not, or where they are further apart than it allows.
static void compare_interleavings(Exploring &exploring, const Outcome &run) {
  const SimJob &job = exploring.job;
  const Outcome &first = *exploring.first;
  const SimOptions &options = exploring.settings.sim;
  auto tell = [&](bool is_error, const std::string &what) {
    const Explanation &row =
        explain(is_error ? "order-dependent" : "order-rounding");
    auto has = [&](const std::vector<std::string> &list) {
      return std::find(list.begin(), list.end(), row.id) != list.end();
    };
    if (has(options.allow))
      return;
    Finding finding{
        .id = std::string(row.id),
        .grade = is_error && has(options.warn) ? Finding::Grade::warning
                                               : row.grade,
        .message = fmt::format("{} between the interleavings '{}' and '{}'",
                               what, first.interleaving.to_string(),
                               run.interleaving.to_string())};
    finding.interleavings = {run.interleaving.to_string()};
    if (exploring.all.add(finding))
      show_finding(finding);
  };
  for (std::size_t i = 0; i < run.memory.size(); ++i) {
    if (run.memory[i] == first.memory[i])
      continue;
    const BufferSpec &buffer = job.file.buffers[i];
    BufferSpec bitwise = buffer;
    bitwise.tolerance = {.is_exact = true};
    BufferComparison apart =
        compare_buffer(bitwise, run.memory[i], first.memory[i]);
    bool is_outside =
        buffer.tolerance.is_given &&
        compare_buffer(buffer, run.memory[i], first.memory[i]).wrong;
    tell(job.file.is_deterministic || is_outside,
         fmt::format("{} of {} elements of '{}' differ{}", apart.wrong,
                     buffer.count, buffer.name,
                     is_outside ? " by more than its tolerance" : ""));
  }
  if (run.printed != first.printed)
    tell(job.file.is_deterministic, "the printed lines differ");
}

/// Where an output is saved.
static std::string path_of(const std::string &folder,
                           const BufferSpec &buffer) {
  return (std::filesystem::path(folder) / (buffer.name + ".npy")).string();
}

/// Refuse outputs that could not be written after the run.
static void check_outputs(const SimCommand &command,
                          const CheckSettings &settings, const SimJob &job) {
  if (settings.timeline_path != "-")
    check_output("--timeline", settings.timeline_path);
  make_folder("--save-dir", command.save_folder);
  for (const BufferSpec &buffer : job.file.buffers)
    if (!command.save_folder.empty() && buffer.is_output)
      check_output("--save-dir", path_of(command.save_folder, buffer));
}

static void save_outputs(const std::string &folder, const SimJob &job,
                         const Outcome &run) {
  for (std::size_t i = 0; i < run.memory.size(); ++i) {
    const BufferSpec &buffer = job.file.buffers[i];
    if (!buffer.is_output)
      continue;
    std::string path = path_of(folder, buffer);
    write_npy(path, buffer.type, buffer.shape, run.memory[i]);
    report("saved", "{}", path);
  }
}

/// The report, the last line and the exit status.
static ExitStatus conclude(const CheckSettings &settings, const Report &all,
                           Outputs &outputs) {
  if (!settings.report_path.empty())
    outputs.attempt([&] { all.save(settings.report_path); });
  auto wrong = std::count_if(
      all.comparisons.begin(), all.comparisons.end(),
      [](const ReportedComparison &one) { return one.wrong != 0; });
  if (all.verdict() == Verdict::error)
    show_failure(RunWatch::signal());
  else if (wrong)
    say("FAIL {} of {} comparisons are wrong\n", wrong,
        all.comparisons.size());
  else
    say("{}\n", all.comparisons.empty() ? "DONE (not verified)" : "PASS");
  return outputs.conclude(all.exit_status());
}

/// Registers at entry matter to setmaxnreg and to residency.
static void report_registers(const ExploredRun &run) {
  for (const LaunchResult &result : run.launches)
    if (result.registers)
      report("registers", "{} per thread at entry ({})", result.registers,
             result.registers_from);
}

/// Show a run and hold its results against what they should be.
static void take_run(Exploring &exploring, const ExploredRun &run) {
  const SimJob &job = exploring.job;
  bool is_first = !exploring.first;
  Outcome outcome{run.interleaving, {}, sorted_lines(run.printed)};
  if (is_first)
    report_registers(run);
  report("ran", "{}", run.interleaving.to_string());
  if (is_first)
    for (const std::string &line : outcome.printed)
      report("printf", "{}", line);
  std::vector<std::size_t> fresh = exploring.all.add(0, run);
  if (exploring.settings.sim.stats)
    for (const LaunchResult &result : run.launches)
      show_stats(result);
  for (std::size_t index : fresh)
    show_finding(exploring.all.findings[index]);
  outcome.memory = exploring.prepared.memory();
  // What an error cut short is not compared, unless the error is a warning.
  bool is_comparable =
      run.is_finished || exploring.all.verdict() != Verdict::error;
  if (is_comparable)
    compare_expected(job, outcome, exploring.all);
  if (is_comparable && !is_first)
    compare_interleavings(exploring, outcome);
  if (is_first)
    exploring.first = std::move(outcome);
  if (!is_comparable)
    report("compared", "nothing in this interleaving: an error ended the launch");
}

static ExitStatus simulate(const SimCommand &command,
                           const CheckSettings &settings) {
  SimJob job = load_job(command.ptx_path, command.launch_path);
  ExploreOptions options = settings.explore_options(
      settings.gpu.empty() ? device_for(job) : DeviceDescription::h200());
  options.sim.registers_at_entry = job.file.registers_at_entry;
  options.sim.co_resident = job.file.is_co_resident;
  options.sim.print = [](const std::string &) {}; // shown line by line
  RunWatch::attach(options.sim);
  check_outputs(command, settings, job);
  report_job(job, options.sim);
  Outputs outputs;
  PreparedJob prepared(job, options.sim);
  Exploring exploring{settings, job, prepared, {}, {}};
  for (ReportedLaunch &launch : prepared.launches())
    exploring.all.begin(std::move(launch));
  Exploration exploration;
  {
    RunWatch watch;
    exploration = prepared.explore(options, [&](const ExploredRun &run) {
      take_run(exploring, run);
    });
  }
  Report &all = exploring.all;
  for (ReportedLaunch &launch : all.launches)
    launch.single_because = exploration.single_because;
  if (!exploration.single_because.empty())
    report("ran", "no other interleaving: {}", exploration.single_because);
  if (!settings.timeline_path.empty())
    outputs.attempt(
        [&] { show_timeline(all.timeline, settings.timeline_path); });
  if (!command.save_folder.empty())
    outputs.attempt(
        [&] { save_outputs(command.save_folder, job, *exploring.first); });
  return conclude(settings, all, outputs);
}

/// Write a first launch file.
static ExitStatus init(const SimCommand &command) {
  check_output("--init", command.init_path);
  if (std::filesystem::exists(command.init_path))
    throw UserError(
        fmt::format("--init {}: the file is there already; name one "
                    "that is not",
                    command.init_path));
  std::string text;
  try {
    text = first_launch_file(read_kernel(command.ptx_path));
  } catch (const UserError &error) {
    if (error.where().file != "PTX")
      throw;
    throw UserError(SourceLine(command.ptx_path, error.where().line),
                    error.message());
  }
  write_file(command.init_path, {text});
  report("wrote", "{}; fill it in: docs/launch-file.md", command.init_path);
  return ExitStatus::ok;
}

/// What is refused goes into the report too.
static ExitStatus run_command(SimCommand command) {
  if (command.launch_path.empty() && command.init_path.empty() &&
      names_its_ptx(command.ptx_path))
    std::swap(command.launch_path, command.ptx_path);
  if (command.launch_path.empty() == command.init_path.empty())
    throw UserError("`kiln sim` takes --launch FILE, or --init FILE to write a "
                    "first one");
  if (!command.init_path.empty())
    return init(command);
  CheckSettings settings = command.check.settings();
  check_output("--report", settings.report_path);
  try {
    return simulate(command, settings);
  } catch (const UserError &error) {
    Report all;
    all.refuse(error);
    Outputs outputs;
    if (!settings.report_path.empty())
      outputs.attempt([&] { all.save(settings.report_path); });
    outputs.conclude(ExitStatus::refused);
    throw;
  }
}

void add_sim_command(Command app, Action &action) {
  Command command =
      app.add_subcommand("sim", "run any PTX on the simulator and check it");
  auto options = std::make_shared<SimCommand>();
  command
      .add_option("kernel", options->ptx_path,
                  "the PTX file, a saved kernel, or a launch file that names "
                  "its PTX")
      .required();
  command.add_option("--launch", options->launch_path,
                     "the launch file: grid, arguments, what is expected");
  command.add_option("--init", options->init_path,
                     "write a first launch file from the PTX, to be filled "
                     "in");
  command.add_option("--save-dir", options->save_folder,
                     "write outputs to NAME.npy in this folder");
  options->check.add_to(command, door_launches);
  command.callback([&action, options] {
    action = [options] { return run_command(*options); };
  });
}

} // namespace kiln::cli
