// InstructionCost: what one instruction of a kernel has cost so far.
#pragma once

#include "kiln/check/profile.h"
#include "sim/profile/SectorUse.h"

#include <map>
#include <string>
#include <vector>

namespace kiln::sim {

struct InstructionCost {
  ProfileCounts counts;
  AccessShape access; ///< its alignment is 0 where nothing was accessed
  std::map<std::string, std::uint64_t> tensor;

  /// Take in a request, or those of another cluster.
  void addShape(const AccessShape &more);
  void add(const InstructionCost &more);
};

/// Of a cluster, or of all of a launch.
struct LaunchCost {
  std::vector<InstructionCost> instructions; ///< as Code::ops
  SectorUse sectors;
  std::uint64_t sectorsRead = 0, sectorsWritten = 0; ///< by all requests

  void add(const LaunchCost &more);
};

} // namespace kiln::sim
