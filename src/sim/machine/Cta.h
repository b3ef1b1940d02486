// Cta: the shared memory, the barriers and the warps of a CTA.
#pragma once

#include "sim/clocks/SharedHistory.h"
#include "sim/machine/Mbarrier.h"
#include "sim/machine/OrderedWork.h"
#include "sim/machine/Warp.h"
#include "sim/machine/memory/Memory.h"
#include "sim/machine/memory/TensorMemory.h"
#include "support/limits/Recycled.h"

#include <array>
#include <functional>

namespace kiln::sim {

class Cluster;
class Machine;

/// Named barrier of a CTA (bar.sync, bar.arrive).
struct CtaBarrier {
  std::uint32_t arrived = 0;    ///< threads
  std::uint32_t expected = 0;   ///< 0: nobody is here
  std::uint32_t generation = 0; ///< completed rounds
  /// bar.red: threads that brought a predicate, and those where it held; of the
  /// round that is open, and of the last two completed ones by their parity.
  struct Votes {
    std::uint32_t threads = 0, holding = 0;
  };
  Votes votes, results[2];
  std::shared_ptr<SyncPoint> round; ///< what the arrived hand over
};

/// What the warps of one warpgroup have issued to its tensor core.
struct TensorCoreQueue {
  /// Issued by some of the four warps.
  struct Waiting {
    const Op *op;
    std::uint64_t descriptorA, descriptorB;
    bool isAdded;
    int warps;
    std::vector<PageCells> cells; ///< of its operands in shared memory
  };
  std::uint64_t formed = 0; ///< multiplications all four warps have issued
  Queue<Waiting> waiting;
  OrderedWork inFlight;    ///< issued by all, not done
  Component component = 0; ///< of its products in the order of accesses
};

class Cta : public Recycled {
public:
  Cta(Machine &machine, Cluster &cluster, const Dim3 &index, int rank);

  Machine &machine() const { return machine_; }
  Cluster &cluster() const { return cluster_; }
  const Dim3 &index() const { return index_; }
  int rankInCluster() const { return rank_; }
  std::uint32_t number() const; ///< in the launch
  int sm() const;
  std::vector<std::unique_ptr<Warp>> &warps() { return warps_; }
  const std::vector<std::unique_ptr<Warp>> &warps() const { return warps_; }
  std::uint32_t sharedBytes() const;
  /// Threads that have not left the kernel.
  std::uint32_t liveThreads() const;
  bool isDone() const;
  /// The other CTA of its pair: the ranks of the two differ in the last bit.
  /// Null where the cluster has none.
  Cta *peer() const;
  /// Its tensor memory, which is there from the first use on.
  TensorMemory &tensorMemory();
  TensorMemory *findTensorMemory() const { return tensorMemory_.get(); }

  /// Shared memory from address kFirstSharedAddress on.
  std::vector<std::uint8_t> shared;
  ValidBits sharedValid;
  std::map<std::uint32_t, MbarrierState> mbarriers; ///< by shared address
  std::array<CtaBarrier, 16> barriers;
  bool hasTriggered = false; ///< griddepcontrol.launch_dependents
  int registerPool = 0;      ///< free registers, for setmaxnreg
  std::array<TensorCoreQueue, 8> tensorCores; ///< one per warpgroup
  ShadowedMemory shadow;                      ///< of shared memory
  SyncPoint left; ///< what its threads knew when they left
  /// De facto, what its threads handed over by relaxed arrivals at the cluster
  /// barrier: in the round that is open, and in those they have waited for.
  std::shared_ptr<FencedClock> relaxedRound;
  FencedClock relaxedMeetings;
  std::map<std::uint32_t, MbarrierHistory> mbarrierHistory; ///< by address

private:
  Machine &machine_;
  Cluster &cluster_;
  Dim3 index_;
  int rank_;
  HostMemory share_; ///< of the host's memory, for the registers of the warps
  std::vector<std::unique_ptr<Warp>> warps_;
  std::unique_ptr<TensorMemory> tensorMemory_;
};

} // namespace kiln::sim
