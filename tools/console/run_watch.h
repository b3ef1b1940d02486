// run_watch: a bar while launches run, and a way out of them.
#pragma once

#include <kiln/check/sim_options.h>

namespace kiln::cli {

/// While it lives, Ctrl-C and SIGTERM end the launch, with what it has found so
/// far, instead of the process; the second one ends that too. On a terminal a
/// bar shows how many CTAs are done.
class RunWatch {
public:
  RunWatch();
  ~RunWatch();
  RunWatch(const RunWatch &) = delete;
  RunWatch &operator=(const RunWatch &) = delete;

  /// Make launches with these options listen.
  static void attach(SimOptions &options);
  /// The signal that came; 0: none.
  static int signal();
};

} // namespace kiln::cli
