// profile_command: what each line of a kernel costs, of PTX or of a program.
//
// It is `kiln sim` or `kiln run` with --profile -, in one interleaving and
// without checks unless somebody asks for them: counts are the same in all.
#include "commands.h"
#include "console/output_file.h"
#include "console/run_watch.h"
#include "console/say.h"
#include "console/show_findings.h"
#include "console/show_profile.h"
#include "options/check_flags.h"
#include "run/elf_file.h"
#include "run/run_command.h"
#include "support/InputFile.h"

#include <kiln/check/launch_file.h>
#include <kiln/check/sim.h>

#include <filesystem>
#include <fmt/format.h>
#include <memory>

namespace kiln::cli {

namespace {
struct ProfileCommand {
  std::vector<std::string> words; ///< a file, or a program and its arguments
  std::string launch_path;
  std::string by = "line";
  ProfileTable table;
  CheckFlags check;
};
} // namespace

/// Whether a file is something that `kiln run` takes.
static bool is_program(const std::string &path) {
  if (path.ends_with(".mlir"))
    return true;
  // What is not here is looked for in PATH.
  if (!std::filesystem::exists(path))
    return !path.ends_with(".ptx") && !path.ends_with(".json");
  char head[2] = {};
  InputFile(path).readAt(0, head, sizeof(head));
  return read_elf(path).is_elf || std::string_view(head, 2) == "#!";
}

static ExitStatus profile_program(const ProfileCommand &command,
                                  const CheckSettings &settings) {
  if (!command.launch_path.empty())
    throw UserError("--launch is for PTX; a program launches its kernels "
                    "itself");
  bool is_default = command.by == "line" && command.table.sort.empty() &&
                    command.table.rows == ProfileTable().rows;
  if (!is_default)
    throw UserError("--by, --sort and --rows are for PTX; write a program's "
                    "profile to a file with --profile FILE.json");
  if (!settings.timeline_path.empty() || settings.sim.stats)
    throw UserError("--timeline and --stats are for PTX, not for programs");
  return run_checked(command.words, command.check);
}

/// The launches of a launch file.
static ExitStatus profile_job(const ProfileCommand &command,
                              const CheckSettings &settings) {
  std::string ptx_path = command.words.front(), path = command.launch_path;
  if (command.words.size() > 1)
    throw UserError(fmt::format("'{}' is one word too many; `kiln profile` "
                                "takes PTX and --launch FILE, or a program",
                                command.words[1]));
  if (!settings.kernel.empty() || !settings.capture_folder.empty())
    throw UserError("--kernel and --capture are for programs, not for PTX");
  if (path.empty() && names_its_ptx(ptx_path))
    std::swap(path, ptx_path);
  if (path.empty())
    throw UserError("`kiln profile` takes --launch FILE with PTX; `kiln sim "
                    "KERNEL.ptx --init FILE` writes a first one");
  LaunchJob job = LaunchJob::load(ptx_path, path);
  ExploreOptions options = settings.explore_options(
      settings.gpu.empty() ? job.device() : DeviceDescription::h200());
  options.sim = job.sim_options(std::move(options.sim));
  RunWatch::attach(options.sim);
  PreparedJob prepared(std::move(job), open_sim(options.sim));
  Report all;
  {
    RunWatch watch;
    all = check_job(prepared, options).report;
  }
  for (const Finding &finding : all.findings)
    show_finding(finding);
  show_left_out(all);
  Outputs outputs;
  outputs.attempt([&] {
    show_profile(all.profiles, settings.profile_path, command.table);
  });
  if (!settings.timeline_path.empty())
    outputs.attempt(
        [&] { show_timeline(all.timeline, settings.timeline_path); });
  if (!settings.report_path.empty())
    outputs.attempt([&] { all.save(settings.report_path); });
  return outputs.conclude(all.exit_status());
}

static ExitStatus run_profile(ProfileCommand &command) {
  command.table.by = parse_profile_by(command.by);
  if (!command.table.sort.empty())
    to_table({}, command.table); // throws where there is no such counter
  CheckSettings settings = command.check.settings();
  command.check.check_outputs();
  return is_program(command.words.front()) ? profile_program(command, settings)
                                           : profile_job(command, settings);
}

void add_profile_command(Command app, Action &action) {
  Command command = app.add_subcommand(
      "profile", "count what each line of a kernel costs: kiln profile "
                 "[OPTIONS] KERNEL.ptx --launch FILE, or PROGRAM "
                 "[ARGUMENTS...] (after --, where they begin with -)");
  auto options = std::make_shared<ProfileCommand>();
  command
      .add_option("kernel", options->words,
                  "what `kiln sim` takes: a PTX file, a saved kernel or a "
                  "launch file; or what `kiln run` takes: a program and its "
                  "arguments")
      .required();
  command.add_option("--launch", options->launch_path,
                     "the launch file of the PTX");
  command
      .add_option("--by", options->by,
                  "rows of the table: line, instruction or kernel")
      .capture_default_str();
  command.add_option("--sort", options->table.sort,
                     "the counter that rows are sorted by, the largest first; "
                     "default: executions (docs/profile.md lists them)");
  command
      .add_option("--rows", options->table.rows,
                  "rows of the table at most; 0: all")
      .capture_default_str();
  // What somebody writes comes behind these.
  options->check.give("checks", "off");
  options->check.give("interleaving", "eager");
  options->check.give("profile", "-");
  options->check.add_to(command, door_everywhere, {"interleavings", "launch"});
  command.callback([&action, options] {
    action = [options] { return run_profile(*options); };
  });
}

} // namespace kiln::cli
