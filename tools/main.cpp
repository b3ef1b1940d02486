// kiln: the command line. Chooses the command and turns what it throws into an
// exit status and one line on stderr.
#include "commands.h"
#include "sim_options.h"

#include <kiln/compile.h>
#include <kiln/error.h>
#include <kiln/text.h>

#include <csignal>
#include <fmt/format.h>
#include <new>

using namespace kiln;

static int fail(ExitStatus status, const std::string &message) {
  std::fflush(stdout);
  // Not fmt::print, which throws where stderr is closed.
  std::fputs(fmt::format("kiln: error: {}\n", printable(message)).c_str(),
             stderr);
  return static_cast<int>(status);
}

/// " gemm" where the command line got as far as a command.
static std::string command_of(const CLI::App &app) {
  auto commands = app.get_subcommands();
  return commands.empty() ? "" : " " + commands.front()->get_name();
}

/// Parse and run. What it throws is main's to explain.
static ExitStatus run_command(CLI::App &app, int argc, char **argv) {
  cli::Action action;
  cli::add_gemm_command(app, action);
  cli::add_emit_command(app, action);
  cli::add_bench_command(app, action);
  cli::add_sim_command(app, action);
  cli::add_layout_command(app, action);
  cli::add_info_commands(app, action);
  app.require_subcommand(0, 1);
  app.parse(argc, argv);
  if (!action)
    throw UserError("a command is required; see `kiln --help`");
  return action();
}

int main(int argc, char **argv) {
  CLI::App app("Tile programs in C++ to tensor-core kernels", "kiln");
  app.set_version_flag("--version", [] { return "kiln " + version(); });
  try {
    ExitStatus status = run_command(app, argc, argv);
    if (std::fflush(stdout) != 0 || std::ferror(stdout))
      return fail(ExitStatus::machine, "the output could not be written");
    return static_cast<int>(status);
  } catch (const CLI::ParseError &error) {
    if (error.get_exit_code() == 0)
      return app.exit(error); // --help and --version, on stdout
    return fail(
        ExitStatus::refused,
        fmt::format("{}; see `kiln{} --help`", error.what(), command_of(app)));
  } catch (const Error &error) {
    int status = fail(error.exit_status(), error.what());
    // Whoever started us shall see that it was Ctrl-C.
    if (cli::RunWatch::is_interrupted())
      std::raise(SIGINT);
    return status;
  } catch (const std::bad_alloc &) {
    return fail(ExitStatus::machine, "there is not enough memory for this");
  } catch (const std::length_error &) {
    return fail(ExitStatus::machine, "there is not enough memory for this");
  } catch (const std::exception &error) {
    return fail(ExitStatus::internal, InternalError(error.what()).what());
  }
}
