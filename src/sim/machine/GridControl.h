// GridControl: what griddepcontrol says of a launch and of the one ahead of it.
//
// A dependent launch may begin before the one ahead of it in its stream, its
// primary, has ended: as soon as every CTA of that has executed
// griddepcontrol.launch_dependents or ended. Only griddepcontrol.wait orders it
// behind what the primary does, and all launches ahead of that: an H200 keeps
// the third of a row waiting for the first where the second has not waited.
#pragma once

#include "sim/clocks/VectorClock.h"

#include <atomic>

namespace kiln::sim {

/// What stands in the clocks of a dependent launch for the end of its primary:
/// time 1. A cluster of that number would share it: then less is found.
inline constexpr Component kPrimaryEnd = ((1u << (32 - kBlockShift)) - 1)
                                         << kBlockShift;

class GridControl {
public:
  /// Before the launch begins: it is dependent.
  void depend() {
    isDependent_ = true;
    isPrimaryOver_ = false;
  }
  bool isDependent() const { return isDependent_; }
  /// Whether griddepcontrol.wait goes on.
  bool isPrimaryOver() const { return isPrimaryOver_; }
  void endPrimary() { isPrimaryOver_ = true; }
  /// A thread has waited for the primary.
  void noteWait() { hasWaited_ = true; }
  bool hasWaited() const { return hasWaited_; }

  /// A thread lets dependents begin; `isBehindWait`: it knows that the primary
  /// of its own launch has ended.
  void noteTrigger(bool isBehindWait) {
    hasTriggered_ = true;
    if (isBehindWait)
      isTriggerBehindWait_ = true;
  }
  bool hasTriggered() const { return hasTriggered_; }
  /// Dependents cannot begin before the launch's own primary has ended.
  bool isStartBehindWait() const {
    return hasTriggered_ ? isTriggerBehindWait_ : hasWaited_;
  }
  /// Whether CTAs that have triggered stop there, so that dependents overtake
  /// them.
  bool isHolding() const { return isHolding_; }
  void hold(bool isHolding) { isHolding_ = isHolding; }

private:
  bool isDependent_ = false;
  std::atomic<bool> isPrimaryOver_{true};
  std::atomic<bool> hasWaited_{false}, hasTriggered_{false};
  std::atomic<bool> isTriggerBehindWait_{false};
  std::atomic<bool> isHolding_{false};
};

} // namespace kiln::sim
