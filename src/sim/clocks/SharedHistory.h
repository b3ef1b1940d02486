// SharedHistory: what is remembered of memory and of mbarriers, for the race
// detector: data alone, kept where the memory and the mbarriers are.
#pragma once

#include "sim/clocks/LaneClocks.h"
#include "sim/clocks/Shadow.h"

#include <map>
#include <set>
#include <unordered_map>
#include <vector>

namespace kiln::sim {

class Cta;
struct Op;
class Warp;

/// What a component of the clocks stands for.
struct Agent {
  enum class Kind : std::uint8_t {
    lanes,
    copies,           ///< cp.async of a warp's threads
    bulkWrites,       ///< bulk copies of a warp's threads to global memory
    bulkReads,        ///< the reading of their sources
    products,         ///< wgmma of a warpgroup
    mbarrier,         ///< copies that complete on it
    tensorOperations, ///< tcgen05.mma, cp and shift of a warp's threads
    tensorLoads,      ///< tcgen05.ld of a warp
    tensorStores,     ///< tcgen05.st of a warp
  };
  Kind kind = Kind::lanes;
  Dim3 cta{};
  std::uint32_t number = 0; ///< warp, warpgroup or shared address
  std::uint32_t ctaNumber = 0, clusterNumber = 0; ///< in the launch
};

/// Something that a lane has begun with an mbarrier, and in which phase.
struct OnMbarrier {
  Warp *warp = nullptr;
  int lane = 0;
  Record record{}; ///< who did it, and when
  std::uint32_t phase = 0;
  std::uint32_t clusterBarriers = 0; ///< that the lane had waited for
};

/// What the order knows of an mbarrier; it outlives mbarrier.inval.
struct MbarrierHistory {
  Component component = 0;
  std::uint32_t phases = 0;   ///< completed so far, never reset
  std::uint32_t observed = 0; ///< of those, by a wait that came true
  /// The last phase that warps have seen completed, by their lanes' component.
  std::map<Component, std::uint32_t> seen;
  /// Copies, and arrivals from other CTAs, of phases that nobody has observed.
  std::vector<OnMbarrier> copies, remoteArrivals;
  const Op *relaxedWait = nullptr;  ///< the last that came true
  Record init{};
  std::uint32_t initFencedIn = ~0u; ///< cluster barriers at its init fence
  /// FencedClock over in this phase and in the one before: by threads of the
  /// CTA that owns the barrier, by others at .cluster scope, by others at .cta.
  struct Phase {
    SyncPoint near, far, plain;
    Clock committed; ///< operations of the tensor core, by tcgen05.commit
  };
  Phase arriving, completed;

  /// Nobody is the agent of one that never was.
  bool isInitialised() const { return init.bytes != 0; }
};

/// What strong operations on an address have handed over to one scope.
struct Published {
  SyncPoint point;
  /// Versions of what fences had made ready and is part of it, in order.
  std::vector<std::uint64_t> fenced;
};

/// What strong operations on one address have published, by scope.
struct Location {
  Published everyone;
  std::map<std::uint32_t, Published> clusters, ctas; ///< by number
  Clock announced; ///< what they seem to say of those before them

  /// What a warp of that CTA and cluster can see of one scope; null: nothing.
  Published *find(Scope scope, const WarpClock &warp);
  Published &of(Scope scope, const WarpClock &warp) {
    return scope == Scope::gpu       ? everyone
           : scope == Scope::cluster ? clusters[warp.cluster]
                                     : ctas[warp.cta];
  }
};

/// The last read-modify-write of an address: it has observed all before it, as
/// long as nothing else has written there with a strong store.
struct Observation {
  Record record{};
  bool isOfAll = true;
};

/// Memory that has a shadow: a CTA's shared memory, or all global memory.
struct ShadowedMemory {
  Cta *owner = nullptr;  ///< of shared or tensor memory; null: global
  bool isTensor = false; ///< tensor memory
  /// By cell: bits 0 and 1 for a live mbarrier in its lower and upper half.
  std::vector<std::uint8_t> barriers;
  /// Whether a live mbarrier is in some of those cells of a page.
  bool hasBarrier(std::uint64_t page, CellSet its) const {
    std::uint64_t first = page * Shadow::kPageCells;
    for (; its && first < barriers.size(); its &= its - 1) {
      auto cell = first + static_cast<unsigned>(std::countr_zero(its));
      if (cell < barriers.size() && barriers[cell])
        return true;
    }
    return false;
  }
  Shadow cells;
  /// The swizzle of what a copy by a tensor map wrote last, by its instruction.
  std::map<std::uint32_t, int> swizzles;
  std::unordered_map<std::uint64_t, Location> locations;
  AddressTable<Observation> observations; ///< by address
};

} // namespace kiln::sim
