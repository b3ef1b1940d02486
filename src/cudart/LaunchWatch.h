// LaunchWatch: the launch that is running, for whoever looks on or wants it to
// end: signals, the time that all launches together may take, and a line on the
// terminal that says how far it is.
#pragma once

#include "kiln/check/options.h"

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>

namespace kiln::cudart {

class LaunchWatch {
public:
  static LaunchWatch &get();

  /// Of the program under `kiln run`: Ctrl-C and SIGTERM end the launch that
  /// runs, which is reported, and then the program. What the program has made
  /// of these signals stays.
  void catchSignals();
  /// Let launches with these options listen, and be seen where somebody looks.
  void attach(SimOptions &options, double totalTimeLimitS);

  /// The launch that comes next, which may be put aside first.
  void announce(const std::string &kernel, std::uint64_t number);
  void begin();
  void end();
  /// The signal that has come; 0: none.
  static int signal();
  /// End the process by it.
  [[noreturn]] static void leave();
  /// What all launches together may still take, of a limit of their own as well;
  /// 0: as long as they like. Negative: their time is over.
  double timeLeft(double own) const;
  /// Take the line away before something else is said.
  void wipe();

private:
  using Clock = std::chrono::steady_clock;
  void draw(std::uint64_t done, std::uint64_t all);

  std::mutex mutex_;
  std::string kernel_;
  std::uint64_t number_ = 0;
  Clock::time_point opened_ = Clock::now(), begun_, drawn_;
  double totalLimitS_ = 0;
  bool isDrawn_ = false;
};

} // namespace kiln::cudart
