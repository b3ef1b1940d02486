// run_watch: a bar while a launch runs, and a way out of it.
//
// The bar is for people: it appears on a terminal, after a moment, and is wiped
// away. The handler only sets flags, which the launch looks at; a second signal
// ends the process as ever.
#include "sim_options.h"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <fmt/format.h>
#include <unistd.h>

namespace kiln::cli {

static std::atomic<bool> is_cancelled{false};
static volatile std::sig_atomic_t received = 0;
static bool is_drawn = false;

/// Both signals to a handler.
static void handle(void (*handler)(int)) {
  std::signal(SIGINT, handler);
  std::signal(SIGTERM, handler);
}

extern "C" void kiln_interrupt(int signal) {
  received = signal;
  is_cancelled = true;
  handle(SIG_DFL);
}

/// Whether anybody sees it or not.
static void draw_text(const std::string &text) {
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
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
  draw_text(fmt::format("\r[{:#<{}}{:{}}] {} of {} CTAs", "", filled, "",
                        width - filled, done, total));
  is_drawn = true;
}

void RunWatch::attach(SimOptions &options) {
  options.cancel = &is_cancelled;
  if (isatty(STDERR_FILENO))
    options.progress = draw;
}

RunWatch::RunWatch() {
  if (!received)
    handle(kiln_interrupt);
}

RunWatch::~RunWatch() {
  handle(SIG_DFL);
  if (is_drawn)
    draw_text(fmt::format("\r{:80}\r", ""));
  is_drawn = false;
}

int RunWatch::signal() { return received; }

} // namespace kiln::cli
