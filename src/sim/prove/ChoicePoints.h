// ChoicePoints: what is a choice. The instructions before which lanes stop, so that
// somebody else may go first, and whether lanes that stand at one can go on.
//
// They are those whose order others can tell: operations on barriers, atomics
// and ordered accesses, loads that a loop waits with, setmaxnreg, allocations,
// and the end of a thread. Everything between two of them belongs to one step:
// accesses of data are ordered by those operations, or they race, which the
// race detector tells in any order.
#pragma once

#include "sim/machine/Warp.h"
#include "sim/prove/Touch.h"

#include <cstdint>
#include <vector>

namespace kiln::sim {

class ChoicePoints {
public:
  explicit ChoicePoints(const Code &code);

  /// By instruction, as Turn::stops has it.
  const std::uint8_t *marks() const { return marks_.data(); }
  bool isStop(int pc) const { return marks_[static_cast<std::size_t>(pc)]; }
  /// The one poll of a loop that does nothing but wait: a round in which it
  /// fails leaves everything as it was, and is no step.
  bool isAwait(int pc) const { return awaits_[static_cast<std::size_t>(pc)]; }
  /// Whether a poll of that group would be a wait: it is that of such a loop,
  /// or a try_wait that said no just now and suspends.
  bool isAwaiting(const Group &group) const;
  /// Whether the group's instruction would be executed now: what it waits for
  /// has come. Of polls of memory nobody knows before they are tried.
  bool canGo(Warp &warp, const Group &group) const;

  /// What a group looks at that waits at an mbarrier.
  Touches looksOf(Warp &warp, const Group &group) const;

  bool countsLiveThreads() const { return countsLiveThreads_; }
  bool readsPending() const { return readsPending_; }
  bool requestsClusters() const { return requestsClusters_; }
  bool hasClusterBarrier() const { return hasClusterBarrier_; }

private:
  static constexpr std::uint8_t kPoll = 1, kWait = 2;

  const Code &code_;
  std::vector<std::uint8_t> marks_, awaits_;
  bool countsLiveThreads_ = false; ///< a barrier of the CTA is for all threads
  bool readsPending_ = false;      ///< mbarrier.pending_count
  bool hasClusterBarrier_ = false;
  bool requestsClusters_ = false; ///< clusterlaunchcontrol.try_cancel
};

} // namespace kiln::sim
