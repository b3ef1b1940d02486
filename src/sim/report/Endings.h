// Endings: the findings of launches that do not end by themselves.
#pragma once

#include "sim/machine/Machine.h"

namespace kiln::sim {

/// Those clusters wait: who waits for what. `notBegun` CTAs have found no room
/// on the device.
Finding describeDeadlock(Machine &machine,
                         const std::vector<Cluster *> &clusters,
                         std::uint64_t notBegun = 0);
/// A cluster has executed more than it may.
Finding describeLimit(Cluster &cluster);
/// The time is up or the caller wants it, with `done` CTAs at their end and
/// those clusters under way.
Finding describeStop(Machine &machine, const std::vector<Cluster *> &clusters,
                     std::uint64_t done);
/// A loop repeats itself, and reads nothing that could change.
Finding describeEndless(Warp &warp, const LoopWatch &loop);

} // namespace kiln::sim
