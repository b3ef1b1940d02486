// Residency: how many CTAs of a launch the described device holds at once.
#pragma once

#include "kiln/check/profile.h"
#include "sim/machine/Machine.h"

namespace kiln::sim {

struct Residency {
  int perSm = 0;          ///< CTAs
  std::uint64_t ctas = 0; ///< on the device; whole clusters
  int smemBytes = 0;      ///< of a CTA, with what the system takes
  const char *limit = ""; ///< "threads", "shared memory", "registers", "CTAs"
  /// By each of them alone; registers: 0 where nobody says how many.
  int byThreads = 0, byShared = 0, byRegisters = 0, byCtas = 0;
};

/// By threads, shared memory, registers at entry and the limit on CTAs.
Residency residencyOf(const LaunchConfig &config,
                      std::uint32_t staticSharedBytes);

/// The same, limit by limit, with the registers that a profile is told with.
ProfiledOccupancy occupancyOf(const LaunchConfig &config,
                              std::uint32_t staticSharedBytes);

/// Whether CTAs may wait for each other: the entry has ordered or atomic
/// accesses of global memory, or a reduction into it, or a loop that polls
/// it, or asks for clusters that have not begun. Such CTAs take turns by time,
/// the others run free.
bool talksThroughGlobal(const Code &code);

/// Whether interleavings differ: the entry has asynchronous operations, atomic,
/// volatile or ordered accesses, loops that poll, mbarriers or cluster barriers.
/// Without them lanes meet at barriers alone, and the order of their accesses is
/// for the race detector, which needs one interleaving.
bool canReorder(const Code &code);

/// Whether the same memory makes the entry do the same again: it reads no clock
/// and takes part in no overlap of launches.
bool isRepeatable(const Code &code);

} // namespace kiln::sim
