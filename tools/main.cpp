// kiln: the command line. Chooses the command and turns what it throws into an
// exit status and one line on stderr.
#include "commands.h"
#include "console/completion.h"
#include "console/man_pages.h"
#include "console/output_file.h"
#include "console/run_watch.h"
#include "options/command_line.h"
#include "options/unknown_words.h"

#include <kiln/base/error.h>
#include <kiln/base/text.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <exception>
#include <fcntl.h>
#include <fmt/format.h>
#include <new>
#include <poll.h>
#include <string_view>
#include <system_error>
#include <unistd.h>

using namespace kiln;

/// Streams that were closed go nowhere, instead of into the next file that is
/// opened; one whose reader has left says so when it is written to.
static void secure_streams() {
  for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(stream, F_GETFD) < 0)
      open("/dev/null", O_RDWR); // takes the lowest number: this one
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN); // a file beyond `ulimit -f` is an error
}

static int fail(ExitStatus status, const std::string &message) {
  std::fflush(stdout);
  std::fputs(fmt::format("kiln: error: {}\n", printable(message)).c_str(),
             stderr);
  // Whoever started us shall see that it was Ctrl-C.
  if (int signal = cli::RunWatch::signal())
    return 128 + signal;
  return static_cast<int>(status);
}

/// The exit status of a command that came to its end. What could not be printed
/// does not change what was found.
static int conclude(ExitStatus status) {
  bool is_printed = std::fflush(stdout) == 0 && !std::ferror(stdout);
  pollfd reader = {STDOUT_FILENO, 0, 0};
  bool has_left = poll(&reader, 1, 0) > 0 && reader.revents & POLLERR;
  if (!is_printed && !has_left)
    return fail(status == ExitStatus::ok ? ExitStatus::machine : status,
                "the output could not be written");
  if (int signal = cli::RunWatch::signal())
    return 128 + signal;
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
  cli::Command commands(app);
  cli::add_compiler_commands(commands, action);
  cli::add_sim_command(commands, action);
  cli::add_litmus_command(commands, action);
  cli::add_prove_command(commands, action);
  cli::add_report_command(commands, action);
  cli::add_run_command(commands, action);
  cli::add_profile_command(commands, action);
  cli::add_debug_command(commands, action);
  cli::add_build_command(commands, action);
  cli::add_layout_command(commands, action);
  cli::add_info_commands(commands, action);
  std::string manual, shell;
  CLI::App *completion = app.add_subcommand(
      "completion", "print what a shell completes: source <(kiln completion "
                    "bash)");
  completion->add_option("shell", shell, "bash, zsh or fish")->required();
  completion->callback([&] {
    action = [&] {
      cli::write_output("", cli::completion_script(app, shell));
      return ExitStatus::ok;
    };
  });
  app.add_option("--man-pages", manual, "a folder for the manual pages")
      ->group(""); // for whoever installs Kiln
  cli::check_words(app, argc, argv);
  app.parse(argc, argv);
  if (!manual.empty()) {
    cli::write_man_pages(app, manual);
    return ExitStatus::ok;
  }
  if (!action)
    throw UserError("a command is required; see `kiln --help`");
  return action();
}

/// Where nothing can be unwound: memory ended while an error was on its way, or
/// where none may be thrown. Whoever called this without an exception has said
/// why.
[[noreturn]] static void end_process() {
  ExitStatus status = ExitStatus::machine;
  std::string_view text = "kiln: error: there is not enough memory for this\n";
  try {
    if (std::exception_ptr error = std::current_exception())
      std::rethrow_exception(error);
    text = "";
  } catch (const std::bad_alloc &) {
  } catch (...) {
    status = ExitStatus::internal;
    text = "kiln: error: internal error: an exception where none may be\n";
  }
  if (write(STDERR_FILENO, text.data(), text.size()) < 0)
    _exit(static_cast<int>(status));
  _exit(static_cast<int>(status));
}

/// Parse and run the command line.
static int run_words(int argc, char **argv) {
  CLI::App app("Tile programs in C++ to tensor-core kernels", "kiln");
  app.set_version_flag("--version", cli::version_line);
  try {
    return conclude(run_command(app, argc, argv));
  } catch (const CLI::ParseError &error) {
    if (error.get_exit_code() == 0) {
      app.exit(error); // --help and --version, on stdout
      return conclude(ExitStatus::ok);
    }
    return fail(
        ExitStatus::refused,
        fmt::format("{}; see `kiln{} --help`", error.what(), command_of(app)));
  }
}

int main(int argc, char **argv) {
  std::set_terminate(end_process);
  secure_streams();
  try {
    return run_words(argc, argv);
  } catch (const Error &error) {
    return fail(error.exit_status(), error.what());
  } catch (const std::bad_alloc &) {
    return fail(ExitStatus::machine, "there is not enough memory for this");
  } catch (const std::length_error &) {
    return fail(ExitStatus::machine, "there is not enough memory for this");
  } catch (const std::system_error &error) {
    // A thread, a folder: what the machine did not give.
    return fail(ExitStatus::machine, error.what());
  } catch (const std::exception &error) {
    return fail(ExitStatus::internal, InternalError(error.what()).what());
  }
}
