// console: a prompt, and batches.
#include "debug/console.h"
#include "console/say.h"

#include <kiln/base/file.h>

#include <atomic>
#include <csignal>
#include <iostream>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace kiln::cli {

/// Whom Ctrl-C interrupts.
static std::atomic<Debugger *> listening{nullptr};

static void interrupt_debugger(int) {
  if (Debugger *debugger = listening)
    debugger->interrupt();
}

namespace {
/// While it lives, Ctrl-C pauses the launch.
class Listening {
public:
  explicit Listening(Debugger &debugger) {
    listening = &debugger;
    before_ = std::signal(SIGINT, interrupt_debugger);
  }
  ~Listening() {
    std::signal(SIGINT, before_);
    listening = nullptr;
  }
  Listening(const Listening &) = delete;
  Listening &operator=(const Listening &) = delete;

private:
  void (*before_)(int);
};
} // namespace

/// Whether a line asks for the end.
static bool is_end(const std::string &answer) {
  auto parsed = nlohmann::json::parse(answer, nullptr, false);
  return parsed.value("command", "") == "quit" && parsed.value("ok", false);
}

/// Whether an empty line says it again, as people do with steps.
static bool is_repeated(const std::string &answer) {
  return nlohmann::json::parse(answer, nullptr, false).contains("reason");
}

static bool is_nothing(const std::string &line) {
  std::size_t first = line.find_first_not_of(" \t\r");
  return first == std::string::npos || line[first] == '#';
}

ExitStatus run_console(Debugger &debugger) {
  Listening scope(debugger);
  bool is_terminal = isatty(STDIN_FILENO);
  std::string line, last;
  if (is_terminal)
    say("kiln debug: `help` lists the commands, `continue` runs\n");
  for (;;) {
    if (is_terminal)
      say("(kiln) ");
    std::fflush(stdout);
    if (!std::getline(std::cin, line))
      break;
    if (is_nothing(line)) {
      if (!line.empty() || last.empty())
        continue;
      line = last;
    }
    std::string answer = debugger.request(line);
    last = is_repeated(answer) ? line : "";
    if (is_end(answer))
      return ExitStatus::ok;
    say("{}", debug_text(answer));
  }
  return ExitStatus::ok;
}

/// Answer a line; false at the end.
static bool answer_line(Debugger &debugger, const std::string &line) {
  if (is_nothing(line))
    return true;
  std::string answer = debugger.request(line);
  std::fputs((answer + "\n").c_str(), stdout);
  std::fflush(stdout);
  return !is_end(answer);
}

ExitStatus run_batch(Debugger &debugger, const std::string &path) {
  Listening scope(debugger);
  std::string line;
  if (path == "-") {
    while (std::getline(std::cin, line))
      if (!answer_line(debugger, line))
        break;
    return ExitStatus::ok;
  }
  std::string text = read_file(path);
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = std::min(text.find('\n', at), text.size());
    if (!answer_line(debugger, text.substr(at, end - at)))
      break;
    at = end + 1;
  }
  return ExitStatus::ok;
}

} // namespace kiln::cli
