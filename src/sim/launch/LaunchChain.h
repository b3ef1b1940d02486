// LaunchChain: launches of one stream of which each may overlap the one ahead.
//
// Programmatic dependent launch: the launches behind the first are dependent.
// Each begins as early as the interleaving wants it, at the earliest when every
// CTA of the one ahead has triggered or ended (GridControl);
// griddepcontrol.wait lets all ahead end. Results are handed out in order.
#pragma once

#include "sim/launch/EntryRegisters.h"
#include "sim/launch/Launch.h"
#include "sim/launch/SimModule.h"
#include "sim/launch/Streams.h"

namespace kiln::sim {

/// A launch that is checked and decoded.
struct PreparedLaunch {
  std::shared_ptr<const SimModule> module;
  std::unique_ptr<Launch> launch;
  EntryRegisters registers;
  bool isDependent = false;

  LaunchResult result();
};

/// A launch that has ended, for dependent ones behind it.
struct EndedLaunch {
  using Launches = std::vector<std::shared_ptr<PreparedLaunch>>;
  std::shared_ptr<PreparedLaunch> prepared;
  /// Launches ahead of it that one behind it may overlap, too.
  Launches before = {};
  /// An event has told another stream of it: whatever is launched there may
  /// overlap it.
  bool isByEvent = false;
};

class LaunchChain {
public:
  using Finished = std::function<void(LaunchResult)>;

  explicit LaunchChain(Streams::Queue &queue) : queue_(queue) {}
  void add(std::shared_ptr<PreparedLaunch> prepared, Finished finished);
  /// As Streams::Work.
  Streams::State advance(bool isLast);

private:
  struct Link {
    std::shared_ptr<PreparedLaunch> prepared;
    Finished finished;
    bool hasBegun = false, hasEnded = false;
    Machine &machine() { return prepared->launch->machine(); }
  };
  void begin(std::size_t number);
  bool canBegin(std::size_t number);
  /// Tell those that have begun that all ahead of them have ended.
  void tellEnds();
  /// One turn for each; whether something moved.
  bool step();
  /// Let the first launch go on that stops at its triggers; false: none does.
  bool letGo();
  /// Hand out what has ended, up to the first that has not.
  void deliver();
  void deliver(Link &link);

  Streams::Queue &queue_;
  std::vector<Link> links_;
  std::size_t delivered_ = 0;
};

} // namespace kiln::sim
