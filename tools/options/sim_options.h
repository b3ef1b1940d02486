// sim_options: the simulator's options, under the same names in every command
// that can run on it, and how what it has to say is shown.
#pragma once

#include "command_line.h"

#include <kiln/check/sim.h>

#include <string>
#include <vector>

namespace kiln::cli {

struct SimFlags {
  std::string order; ///< empty: not said
  std::uint64_t seed = 0;
  std::string checks = "on";
  int threads = 0;
  std::string gpu; ///< that is simulated; empty: as the PTX needs
  int sms = 0;     ///< 0: as the described device has
  std::uint64_t max_instructions = kDefaultMaxInstructions;
  double time_limit_s = 0;              ///< of a launch; 0: none
  std::vector<std::string> allow, warn; ///< ids of findings
  std::string timeline_path;            ///< "-": a table on stdout; empty: none
  bool has_stats = false;

  /// Declare all but --allow, which means more in some commands.
  void add_to(Command command);
  /// Throws UserError where a value is none of the accepted ones.
  SimOptions options() const;
  /// Simulate that device, with as many multiprocessors as were asked for.
  void set_device(SimOptions &options, const DeviceDescription &device) const;
};

/// Print a finding: "error      mbarrier-over-arrival at gemm.cpp:12: ...".
void show_finding(const Finding &finding);
/// Print where the time of a launch went, and the registers it started with.
void show_stats(const LaunchResult &result);
/// Write a trace to the file, or print a table where it is "-". Throws
/// RuntimeError where it cannot be written.
void show_timeline(const Timeline &timeline, const std::string &path);

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

/// "FAIL ..." for a launch that a finding has ended.
void show_failure();

} // namespace kiln::cli
