// Spectator: who looks at the clusters of a launch from the outside: the
// debugger.
//
// It adds watchers of its own, and is shown a cluster before that is gone, and
// before a finding ends the launch. A thread has one or none, so that launches
// which nobody debugs have nothing to carry.
#pragma once

#include "sim/checks/RaceDetector.h"
#include "sim/machine/Machine.h"

namespace kiln::sim {

class Spectator {
public:
  virtual ~Spectator() = default;

  /// A cluster has been made and has not run yet; null: nothing is checked.
  virtual void begin(Cluster &cluster, RaceDetector *races) = 0;
  /// It has ended.
  virtual void end(Cluster &cluster) = 0;
  /// The launch is about to end, and its clusters are still there.
  virtual void ending(const Finding &finding) = 0;

  /// Of this thread; null: nobody looks.
  static Spectator *current();
};

/// Launches of this thread are looked at from here to the end of the scope.
class SpectatorScope {
public:
  explicit SpectatorScope(Spectator &spectator);
  ~SpectatorScope();
  SpectatorScope(const SpectatorScope &) = delete;
  SpectatorScope &operator=(const SpectatorScope &) = delete;
};

} // namespace kiln::sim
