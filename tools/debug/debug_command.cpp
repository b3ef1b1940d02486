// debug_command: `kiln debug`: the console, a batch of commands, or the adapter
// that editors speak to.
#include "commands.h"
#include "debug/console.h"
#include "debug/dap_server.h"
#include "debug/debug_job.h"

#include <memory>

namespace kiln::cli {

namespace {
struct DebugCommandLine {
  DebugWords job;
  bool is_dap = false;
  std::string batch_path;
};
} // namespace

static ExitStatus run_debug(const DebugCommandLine &command) {
  if (command.is_dap) {
    if (!command.batch_path.empty())
      throw UserError("--dap and --batch exclude each other");
    return run_dap(command.job);
  }
  std::unique_ptr<Debugger> debugger =
      open_debugger(command.job, !command.batch_path.empty());
  return command.batch_path.empty() ? run_console(*debugger)
                                    : run_batch(*debugger, command.batch_path);
}

void add_debug_command(Command app, Action &action) {
  Command command = app.add_subcommand(
      "debug", "stop a launch, look at it, and run it forwards and backwards: "
               "kiln debug [OPTIONS] KERNEL.ptx --launch FILE, LAUNCH.json, or "
               "PROGRAM [ARGUMENTS...] (after --, where they begin with -)");
  auto options = std::make_shared<DebugCommandLine>();
  command.add_option("kernel", options->job.words,
                     "what `kiln sim` takes: a PTX file, a saved kernel or a "
                     "launch file; or what `kiln run` takes: a program and its "
                     "arguments");
  command.add_option(
      "--launch", options->job.launch,
      "the launch file of the PTX; of a program or a launch file "
      "the number of the launch, from 1 on");
  command.add_flag("--dap", options->is_dap,
                   "speak the Debug Adapter Protocol on stdin and stdout");
  command.add_option("--batch", options->batch_path,
                     "take commands from this file, or - for stdin, and answer "
                     "each with a line of JSON");
  command
      .add_option("--checkpoint-memory", options->job.checkpoint_memory,
                  "what checkpoints may take of the memory")
      .value_name("BYTES")
      .capture_default_str();
  // What somebody writes comes behind it.
  options->job.check.give("interleaving", "eager");
  options->job.check.add_to(command, door_everywhere,
                            {"interleavings", "report", "timeline", "profile",
                             "stats", "detail", "time-limit", "threads",
                             "launch", "capture", "total-time-limit", "summary",
                             "verbose"});
  command.callback([&action, options] {
    action = [options] { return run_debug(*options); };
  });
}

} // namespace kiln::cli
