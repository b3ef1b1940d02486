// sim_command: any PTX on the simulator, as a launch file describes it.
//
// Findings of the simulator and comparisons with what is expected make the
// verdict; the last line is PASS, FAIL, or DONE where nothing was compared.
#include "commands.h"
#include "confined_run.h"
#include "console/output_file.h"
#include "console/run_watch.h"
#include "console/say.h"
#include "console/show_findings.h"
#include "console/show_profile.h"
#include "launch_files.h"
#include "options/check_flags.h"
#include "support/limits/Budget.h"
#include "support/text/Npy.h"

#include <kiln/base/file.h>
#include <kiln/check/launch_file.h>
#include <kiln/check/prove.h>
#include <kiln/check/report.h>
#include <kiln/check/sim.h>

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>

namespace kiln::cli {

namespace {

struct SimCommand {
  std::string ptx_path;
  std::string launch_path;
  std::string init_path; ///< a launch file to write; empty: none
  std::string save_folder;
  std::string replay_path; ///< a counterexample; empty: none
  std::string shard;       ///< "2/8", of a folder; empty: all of it
  ConfinedFlags confined;
  CheckFlags check;
};

} // namespace

static std::string by(const std::array<std::uint32_t, 3> &size) {
  return fmt::format("{}", fmt::join(size, "x"));
}

static void report_job(const LaunchJob &job, const SimOptions &options) {
  report("kernel", "{}", fmt::join(job.ptx_paths, ", "));
  for (const LaunchSpec &launch : job.file.launches)
    report("launch", "{}grid {}, block {}{}{}",
           launch.kernel.empty() ? "" : launch.kernel + ", ", by(launch.grid),
           by(launch.block),
           launch.cluster == std::array<std::uint32_t, 3>{1, 1, 1}
               ? ""
               : ", cluster " + by(launch.cluster),
           launch.dynamic_smem_bytes.value_or(0)
               ? fmt::format(", {} bytes of dynamic shared memory",
                             *launch.dynamic_smem_bytes)
               : "");
  // The simulator knows buffers by their numbers.
  for (std::size_t i = 0; i < job.file.buffers.size(); ++i) {
    const BufferSpec &buffer = job.file.buffers[i];
    report(fmt::format("buffer {}", i), "{}: {}[{}], {}{}", buffer.name,
           name(buffer.type), fmt::join(buffer.shape, ", "),
           buffer.initial().to_string(), buffer.is_output ? ", output" : "");
  }
  report("device", "sim ({}), {} SMs{}", options.device.name,
         options.device.sms, options.checks ? "" : ", checks off");
}

/// Where an output is saved.
static std::string path_of(const std::string &folder,
                           const BufferSpec &buffer) {
  return (std::filesystem::path(folder) / (buffer.name + ".npy")).string();
}

/// Refuse outputs that could not be written after the run; these are they.
static std::vector<std::string> check_outputs(const SimCommand &command,
                                              const LaunchJob &job) {
  std::vector<std::string> paths;
  make_folder("--save-dir", command.save_folder);
  for (const BufferSpec &buffer : job.file.buffers) {
    if (command.save_folder.empty() || !buffer.is_output)
      continue;
    paths.push_back(path_of(command.save_folder, buffer));
    check_output("--save-dir", paths.back());
  }
  return paths;
}

static void save_outputs(const std::string &folder, const LaunchJob &job,
                         const std::vector<LaunchJob::Bytes> &memory) {
  for (std::size_t i = 0; i < memory.size(); ++i) {
    const BufferSpec &buffer = job.file.buffers[i];
    if (!buffer.is_output)
      continue;
    std::string path = path_of(folder, buffer);
    writeNpy(path, buffer.type, buffer.shape, memory[i]);
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
  show_left_out(all);
  if (all.verdict() == Verdict::error)
    show_failure(RunWatch::signal());
  else if (all.verdict() == Verdict::refused)
    say("FAIL a launch file was refused\n");
  else if (wrong)
    say("FAIL {} of {} comparisons are wrong\n", wrong, all.comparisons.size());
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

static void show_comparison(const JobComparison &comparison) {
  for (const std::string &line : comparison.wrong)
    report("wrong", "{}", line);
  if (!comparison.summary.empty())
    report("compared", "{}", comparison.summary);
}

static void show_run(const CheckSettings &settings, const Report &all,
                     const JobRun &run, bool is_first) {
  if (is_first)
    report_registers(run.run);
  report("ran", "{}", run.run.interleaving.to_string());
  if (is_first)
    for (const std::string &line : run.printed)
      report("printf", "{}", line);
  if (settings.sim.stats)
    for (const LaunchResult &result : run.run.launches)
      show_stats(result);
  for (std::size_t index : run.findings)
    show_finding(all.findings[index]);
  for (const JobComparison &comparison : run.comparisons)
    show_comparison(comparison);
  for (std::size_t index : run.dependent)
    show_finding(all.findings[index]);
  if (!run.is_compared)
    report("compared",
           "nothing in this interleaving: an error ended the launch");
}

static ExitStatus simulate(const SimCommand &command,
                           const CheckSettings &settings) {
  std::optional<BudgetScope> budget;
  budget.emplace(
      Budget{settings.sim.time_limit_s, settings.sim.memory_limit_bytes},
      "the reading of the PTX");
  LaunchJob job = LaunchJob::load(command.ptx_path, command.launch_path);
  ExploreOptions options = settings.explore_options(
      settings.gpu.empty() ? job.device() : DeviceDescription::h200());
  budget.reset(); // launches have their own
  options.sim = job.sim_options(std::move(options.sim));
  options.sim.print = [](const std::string &) {}; // shown line by line
  RunWatch::attach(options.sim);
  std::vector<std::string> saved = check_outputs(command, job);
  report_job(job, options.sim);
  Outputs outputs;
  PreparedJob prepared(std::move(job), open_sim(options.sim));
  confine_run(command.confined, settings, prepared, saved);
  CheckedJob checked;
  {
    RunWatch watch;
    bool is_first = true;
    checked =
        check_job(prepared, options, [&](const Report &all, const JobRun &run) {
          show_run(settings, all, run, std::exchange(is_first, false));
        });
  }
  if (!checked.single_because.empty())
    report("ran", "no other interleaving: {}", checked.single_because);
  if (!settings.timeline_path.empty())
    outputs.attempt([&] {
      show_timeline(checked.report.timeline, settings.timeline_path);
    });
  if (!settings.profile_path.empty())
    outputs.attempt(
        [&] { show_profile(checked.report.profiles, settings.profile_path); });
  if (!command.save_folder.empty())
    outputs.attempt([&] {
      save_outputs(command.save_folder, prepared.job(), checked.memory);
    });
  return conclude(settings, checked.report, outputs);
}

/// Write a first launch file.
static ExitStatus init(const SimCommand &command) {
  check_output("--init", command.init_path);
  if (std::filesystem::exists(command.init_path))
    throw UserError(
        fmt::format("--init {}: the file is there already; name one "
                    "that is not",
                    command.init_path));
  LaunchFile file;
  try {
    file = first_launch_file(read_kernel(command.ptx_path));
  } catch (const UserError &error) {
    if (error.where().file != "PTX")
      throw;
    throw UserError(SourceLine(command.ptx_path, error.where().line),
                    error.message());
  }
  file.save(command.init_path);
  report("wrote", "{}; fill it in: docs/launch-file.md", command.init_path);
  return ExitStatus::ok;
}

/// The choices of a counterexample, once more.
static ExitStatus replay_choices(const SimCommand &command) {
  Counterexample example = Counterexample::load(command.replay_path);
  CheckSettings settings = command.check.settings();
  LaunchJob loaded = LaunchJob::load(
      example.ptx_paths.empty() ? "" : example.ptx_paths.front(),
      example.launch_path);
  SimOptions sim = loaded.sim_options(
      settings
          .explore_options(settings.gpu.empty() ? loaded.device()
                                                : DeviceDescription::h200())
          .sim);
  RunWatch::attach(sim);
  PreparedJob job(std::move(loaded), open_sim(sim));
  if (example.launch >= job.descriptions().size())
    throw UserError(fmt::format(
        "{}: launch is {}, and {} has {} launches", command.replay_path,
        example.launch, example.launch_path, job.descriptions().size()));
  RunWatch watch;
  for (std::size_t i = 0; i < example.launch; ++i)
    (void)job.device().launch(job.descriptions()[i]);
  LaunchResult result = replay(job.device(), job.descriptions()[example.launch],
                               example.path, example.cluster, sim);
  report("replayed", "{} turns of {}", example.path.size(),
         command.replay_path);
  for (Finding &finding : result.findings) {
    job.name_places(finding);
    show_finding(finding);
  }
  if (result.ok()) {
    say("DONE (not verified)\n");
    return ExitStatus::ok;
  }
  show_failure(RunWatch::signal());
  return ExitStatus::finding;
}

/// All launch files of a folder.
static ExitStatus simulate_folder(const SimCommand &command) {
  if (!command.launch_path.empty() || !command.init_path.empty() ||
      !command.save_folder.empty())
    throw UserError("a folder of launch files takes no --launch, --init or "
                    "--save-dir");
  if (command.confined.is_wanted)
    throw UserError(
        "a folder of launch files takes no --confined: each of them "
        "names files of its own");
  CheckSettings settings = command.check.settings();
  if (!settings.timeline_path.empty())
    throw UserError("a folder of launch files takes no --timeline; a report "
                    "page has the timelines");
  command.check.check_outputs();
  Shard shard = command.shard.empty() ? Shard{} : Shard::parse(command.shard);
  Report all = check_folder(command.ptx_path, shard, settings);
  Outputs outputs;
  return conclude(settings, all, outputs);
}

/// What is refused goes into the report too.
static ExitStatus run_command(SimCommand command) {
  check_confined(command.confined);
  if (!command.replay_path.empty())
    return replay_choices(command);
  if (command.ptx_path.empty())
    throw UserError("`kiln sim` takes the PTX file, a saved kernel, a launch "
                    "file that names its PTX or a folder of such; or --replay "
                    "FILE");
  if (std::filesystem::is_directory(command.ptx_path))
    return simulate_folder(command);
  if (!command.shard.empty())
    throw UserError(
        fmt::format("--shard is for a folder of launch files; {} is "
                    "none",
                    command.ptx_path));
  if (command.launch_path.empty() && command.init_path.empty() &&
      names_its_ptx(command.ptx_path))
    std::swap(command.launch_path, command.ptx_path);
  if (command.launch_path.empty() == command.init_path.empty())
    throw UserError("`kiln sim` takes --launch FILE, or --init FILE to write a "
                    "first one");
  if (!command.init_path.empty())
    return init(command);
  CheckSettings settings = command.check.settings();
  command.check.check_outputs();
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
  command.add_option(
      "kernel", options->ptx_path,
      "the PTX file, a saved kernel, a launch file that names its "
      "PTX, or a folder of such");
  command.add_option("--launch", options->launch_path,
                     "the launch file: grid, arguments, what is expected");
  command.add_option("--init", options->init_path,
                     "write a first launch file from the PTX, to be filled "
                     "in");
  command.add_option("--save-dir", options->save_folder,
                     "write outputs to NAME.npy in this folder");
  command
      .add_option("--shard", options->shard,
                  "of a folder, run the I-th of N parts; `kiln report --merge` "
                  "joins their reports")
      .value_name("I/N");
  command.add_flag("--confined", options->confined.is_wanted,
                   "run only where the kernel can confine the simulator, by "
                   "Landlock and seccomp, to the files it writes and the "
                   "sources it quotes; without it, as far as the kernel can");
  command.add_flag("--unconfined", options->confined.is_unwanted,
                   "keep all rights of the user, for a debugger or a tracer");
  command
      .add_option("--replay", options->replay_path,
                  "make the choices of a counterexample of `kiln prove` once "
                  "more")
      .value_name("FILE");
  options->check.add_to(command, door_launches);
  command.callback([&action, options] {
    action = [options] { return run_command(*options); };
  });
}

} // namespace kiln::cli
