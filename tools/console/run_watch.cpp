// run_watch: a bar while a launch runs, and a way out of it.
//
// The bar is for people: it appears on a terminal, after a moment, and is wiped
// away. The handler only sets flags, which the launch looks at; a second signal
// ends the process as ever.
#include "run_watch.h"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <fmt/format.h>
#include <unistd.h>

namespace kiln::cli {

static std::atomic<bool> is_cancelled{false};
static volatile std::sig_atomic_t received = 0;
static bool is_drawn = false;
static constexpr int kBarWidth = 100;

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

using Clock = std::chrono::steady_clock;
static Clock::time_point started; ///< the launch at hand

/// "12 CTAs/s, 40 s left", once there is something to tell.
static std::string pace(std::uint64_t done, std::uint64_t total) {
  double seconds =
      std::chrono::duration<double>(Clock::now() - started).count();
  if (!done || seconds <= 0)
    return "";
  double rate = static_cast<double>(done) / seconds;
  return fmt::format(", {:.3g} CTAs/s, {:.0f} s left", rate,
                     static_cast<double>(total - done) / rate);
}

/// Draw the bar, at most ten times a second and not in the first half second;
/// the last CTA is shown too.
static void draw(std::uint64_t done, std::uint64_t total) {
  static Clock::time_point last;
  bool is_early = Clock::now() - started < std::chrono::milliseconds(500);
  bool is_soon = Clock::now() - last < std::chrono::milliseconds(100);
  if (is_early || (is_soon && done < total))
    return;
  last = Clock::now();
  constexpr std::uint64_t width = 40;
  std::uint64_t filled = total ? done * width / total : width;
  std::string text =
      fmt::format("[{:#<{}}{:{}}] {} of {} CTAs{}", "", filled, "",
                  width - filled, done, total, pace(done, total));
  draw_text(fmt::format("\r{:<{}}", text, kBarWidth));
  is_drawn = true;
}

void RunWatch::attach(SimOptions &options) {
  options.cancel = &is_cancelled;
  if (isatty(STDERR_FILENO))
    options.progress = draw;
}

RunWatch::RunWatch() {
  started = Clock::now();
  if (!received)
    handle(kiln_interrupt);
}

RunWatch::~RunWatch() {
  handle(SIG_DFL);
  if (is_drawn)
    draw_text(fmt::format("\r{:{}}\r", "", kBarWidth));
  is_drawn = false;
}

int RunWatch::signal() { return received; }

} // namespace kiln::cli
