// LaunchesAside: launches that the next one may overlap.
//
// A launch whose kernel executes griddepcontrol.launch_dependents is not run
// when the program asks for it: the next one of its stream may be dependent,
// and begin before it has ended. It is put aside until such a one comes and
// joins it; until the program does anything else with the device; or for a
// moment, for a host may look at mapped memory without asking anybody. Then
// they run together, in every interleaving.
#pragma once

#include "kiln/check/explore.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace kiln::cudart {

class LaunchesAside {
public:
  using Finished = std::function<void(Exploration)>;
  /// Launches, of which all but the first are dependent.
  using Run = std::function<void(std::span<const LaunchDescription> launches,
                                 const Stream &stream, bool isChosen,
                                 Finished finished)>;
  explicit LaunchesAside(Run run) : run_(std::move(run)) {}
  ~LaunchesAside();

  /// Put a launch aside, or run it and those before it. `finished` is told when
  /// it is over, with no runs where a finding has ended one ahead of it. Throws
  /// UserError where it is refused.
  void add(Simulation &simulation, const LaunchDescription &launch,
           const Stream &stream, bool isChosen, Finished finished);
  /// Run what was put aside. What goes wrong then has been told.
  void finish();

private:
  void finishLocked();
  void keepTime();

  Run run_;
  std::recursive_mutex mutex_; ///< of what follows
  std::vector<LaunchDescription> launches_;
  std::vector<Finished> finished_;
  Stream stream_;
  bool isChosen_ = true;
  /// Runs them when nobody has come for them.
  std::thread timer_;
  std::condition_variable_any hasChanged_;
  std::chrono::steady_clock::time_point deadline_;
  bool isEnded_ = false;
};

} // namespace kiln::cudart
