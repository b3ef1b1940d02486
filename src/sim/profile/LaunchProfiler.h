// LaunchProfiler: the profile of a launch, from those of its clusters.
#pragma once

#include "sim/profile/Profiler.h"

#include <memory>

namespace kiln::sim {

class LaunchProfiler {
public:
  explicit LaunchProfiler(const Machine &machine);

  /// Count what a cluster does; Cluster::profiler.
  void watch(Cluster &cluster) const;
  /// Take in what came of one, in the order of their numbers or in any other.
  void add(Watcher &profiler);
  std::shared_ptr<const Profile> conclude(ProfiledOccupancy occupancy,
                                          bool isFinished) const;

private:
  const Machine &machine_;
  std::vector<Operations> operations_; ///< of the instructions
  LaunchCost cost_;
};

} // namespace kiln::sim
