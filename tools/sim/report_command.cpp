// report_command: reports that were written before, in another format, several
// as one, or two compared; and of a launch file the report that running it gives.
#include "commands.h"
#include "console/output_file.h"
#include "console/say.h"
#include "launch_files.h"

#include <kiln/base/file.h>
#include <kiln/check/launch_file.h>

#include <filesystem>
#include <fmt/format.h>

namespace kiln::cli {

namespace {
struct ReportCommand {
  std::vector<std::string> inputs, outputs;
  bool is_merge = false, is_compare = false;
};
} // namespace

/// A report, or a launch file that is run for one.
static Report read_report(const std::string &path,
                          const CheckSettings &settings) {
  if (std::filesystem::is_directory(path))
    return check_folder(path, {}, settings);
  if (!names_its_ptx(path))
    return Report::from_json(read_file(path), path);
  report("running", "{}", path);
  return check_file(
      {path, std::filesystem::path(path).filename().string()}, settings);
}

static ExitStatus compare(const ReportCommand &command,
                          const CheckSettings &settings) {
  if (command.inputs.size() != 2)
    throw UserError(fmt::format("--compare takes two reports, the earlier one "
                                "first; {} are named",
                                command.inputs.size()));
  Report before = read_report(command.inputs[0], settings);
  Report after = read_report(command.inputs[1], settings);
  ReportComparison comparison = compare_reports(before, after);
  say("{}", comparison.to_text());
  Outputs outputs;
  for (const std::string &path : command.outputs)
    outputs.attempt([&] {
      write_file(path, {path.ends_with(".html")
                            ? comparison.to_html(command.inputs[0],
                                                 command.inputs[1])
                            : comparison.to_text()});
    });
  return outputs.conclude(comparison.has_new_errors() ? ExitStatus::finding
                                                      : ExitStatus::ok);
}

static ExitStatus write_reports(const ReportCommand &command,
                                const CheckSettings &settings) {
  if (command.inputs.size() > 1 && !command.is_merge)
    throw UserError(fmt::format("{} reports are named; --merge makes one of "
                                "them, --compare says what two differ in",
                                command.inputs.size()));
  Report all = read_report(command.inputs.front(), settings);
  for (std::size_t i = 1; i < command.inputs.size(); ++i)
    all.merge(read_report(command.inputs[i], settings));
  if (command.outputs.empty())
    say("{}", all.to_text());
  Outputs outputs;
  for (const std::string &path : command.outputs) {
    outputs.attempt([&] { all.save(path); });
    report("wrote", "{}", path);
  }
  return outputs.conclude(ExitStatus::ok);
}

static ExitStatus run_command(const ReportCommand &command) {
  if (command.is_merge && command.is_compare)
    throw UserError("--merge and --compare are two things; use one of them");
  for (const std::string &path : command.outputs)
    check_output("--output", path);
  CheckSettings settings;
  settings.detail = true;
  return command.is_compare ? compare(command, settings)
                            : write_reports(command, settings);
}

void add_report_command(Command app, Action &action) {
  Command command = app.add_subcommand(
      "report", "make a page, SARIF, JUnit XML or text of a JSON report, merge "
                "several, or compare two");
  auto options = std::make_shared<ReportCommand>();
  command
      .add_option("reports", options->inputs,
                  "reports in JSON (--report FILE.json), launch files that name "
                  "their PTX, or folders of these, which are run")
      .required()
      .expected(1, -1);
  command
      .add_option("-o,--output", options->outputs,
                  "write to this file: a page (.html), SARIF (.sarif), JUnit "
                  "XML (.xml), text (.txt), else JSON; may be said several times")
      .value_name("FILE")
      .one_value_each();
  command.add_flag("--merge", options->is_merge,
                   "make one report of all: of shards, hosts or programs");
  command.add_flag("--compare", options->is_compare,
                   "say what came, went and changed from the first report to the "
                   "second; the exit status is 2 where an error came");
  command.callback([&action, options] {
    action = [options] { return run_command(*options); };
  });
}

} // namespace kiln::cli
