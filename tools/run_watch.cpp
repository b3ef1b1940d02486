// run_watch: a bar while a launch runs, and a way out of it.
//
// The bar is for people: it appears on a terminal, after a moment, and is wiped
// away. The handler only sets a flag, which the launch looks at; a second
// Ctrl-C ends the process as ever.
#include "sim_options.h"

#include <chrono>
#include <csignal>
#include <fmt/format.h>
#include <unistd.h>

namespace kiln::cli {

static std::atomic<bool> interrupted{false};
static bool is_drawn = false;

extern "C" void kiln_interrupt(int) {
  interrupted = true;
  std::signal(SIGINT, SIG_DFL);
}

/// Draw the bar, at most ten times a second and not in the first half second.
static void draw(std::uint64_t done, std::uint64_t total) {
  using Clock = std::chrono::steady_clock;
  static Clock::time_point last = Clock::now() + std::chrono::milliseconds(400);
  if (Clock::now() - last < std::chrono::milliseconds(100))
    return;
  last = Clock::now();
  constexpr std::uint64_t width = 40;
  std::uint64_t filled = total ? done * width / total : width;
  fmt::print(stderr, "\r[{:#<{}}{:{}}] {} of {} CTAs", "", filled, "",
             width - filled, done, total);
  std::fflush(stderr);
  is_drawn = true;
}

RunWatch::RunWatch(SimOptions &options) {
  options.cancel = &interrupted;
  if (isatty(STDERR_FILENO))
    options.progress = draw;
  std::signal(SIGINT, kiln_interrupt);
}

RunWatch::~RunWatch() {
  std::signal(SIGINT, SIG_DFL);
  if (is_drawn)
    fmt::print(stderr, "\r{:80}\r", "");
  is_drawn = false;
}

bool RunWatch::is_interrupted() { return interrupted; }

} // namespace kiln::cli
