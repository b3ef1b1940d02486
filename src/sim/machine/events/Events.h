// Events: what happens in the machine, for those who watch it.
//
// A unit says what its instruction does, in the words of the hardware, and not
// what follows from it: which accesses race, how long a warp waits, what a
// statistic counts is for the watchers to know (Watchers.h). An event names
// what it is about by reference and is told at once, so that nothing of it is
// kept by the machine.
#pragma once

#include "sim/machine/Cta.h"

#include <span>

namespace kiln::sim {

/// What a watcher may ask for.
enum class EventKind : std::uint8_t {
  lifetime,    ///< warps, CTAs and clusters begin and end
  instruction, ///< before and after each one
  registers,   ///< before those whose registers matter to somebody
  skip,        ///< instructions that no lane executes
  access,      ///< of memory, by threads and by asynchronous units
  storedValue, ///< what threads store, as a part of their accesses
  async,       ///< asynchronous operations begin and end
  barrier,     ///< arrivals, waits and phases
  fence,
  allocation, ///< of tensor memory and of the heap
};
using EventMask = std::uint32_t;
template <typename... Kinds> constexpr EventMask maskOf(Kinds... kinds) {
  return ((EventMask(1) << static_cast<unsigned>(kinds)) | ...);
}

// Lifetimes.

struct WarpBegin {
  static constexpr EventKind kKind = EventKind::lifetime;
  Warp &warp;
};
/// Its warps have begun.
struct CtaBegin {
  static constexpr EventKind kKind = EventKind::lifetime;
  Cta &cta;
};
/// Lanes leave the kernel.
struct LanesEnd {
  static constexpr EventKind kKind = EventKind::lifetime;
  Warp &warp;
  LaneMask lanes;
};
struct CtaEnd {
  static constexpr EventKind kKind = EventKind::lifetime;
  Cta &cta;
};
/// Of several CTAs.
struct ClusterEnd {
  static constexpr EventKind kKind = EventKind::lifetime;
  Cluster &cluster;
};

// Instructions.

/// Lanes are about to execute an instruction.
struct InstructionBegin {
  static constexpr EventKind kKind = EventKind::instruction;
  Warp &warp;
  const Op &op;
  LaneMask lanes;
};
/// Its predicate holds for none of the lanes that are there.
struct InstructionSkip {
  static constexpr EventKind kKind = EventKind::skip;
  Warp &warp;
  const Op &op;
  LaneMask lanes;
};
struct InstructionEnd {
  static constexpr EventKind kKind = EventKind::instruction;
  Warp &warp;
  const Op &op;
  LaneMask lanes;
  Step step;
};

/// Lanes are about to execute an instruction of which somebody may have to know
/// what it does with registers (Op::isTracked): with bytes that nobody wrote,
/// or with what an asynchronous unit uses.
struct RegisterUse {
  static constexpr EventKind kKind = EventKind::registers;
  Warp &warp;
  const Op &op;
  LaneMask lanes;
};

// Accesses.

/// What one lane reads or writes.
struct LaneAccess {
  std::uint64_t address; ///< from the first byte of shared memory on, or global
  Cta *owner;            ///< of shared memory; null: global memory
  std::uint32_t bytes;
  std::uint8_t lane;
  bool isWrite;
  bool isSame; ///< a write of what stands there already
};

/// How the addresses of a warp's lanes lie.
enum class Pattern : std::uint8_t {
  uniform,     ///< all of them are one
  consecutive, ///< each lane's is one access behind that of the lane before it
  scattered,
};

/// The accesses of a warp's lanes that differ in nothing but their addresses.
struct AlikeLanes {
  const std::uint64_t *addresses; ///< by lane, as LaneAccess has them
  LaneMask lanes;
  LaneMask same; ///< those that write what stands there already
  Cta *owner;
  std::uint32_t bytes;
  bool isWrite;
  Pattern pattern;
  std::uint64_t low, high; ///< the first bytes that some lane touches
};

/// What lanes do, one by one: as a list, or from what they have in common.
class LaneAccesses {
public:
  LaneAccesses(std::span<const LaneAccess> list) : list_(list) {}
  LaneAccesses(const AlikeLanes &alike) : alike_(&alike) {}

  /// null: they are a list.
  const AlikeLanes *alike() const { return alike_; }

  class Iterator {
  public:
    Iterator(const LaneAccess *next, const AlikeLanes *alike, LaneMask left)
        : next_(next), alike_(alike), left_(left) {}
    LaneAccess operator*() const {
      if (!alike_)
        return *next_;
      int lane = firstLane(left_);
      return {alike_->addresses[lane],        alike_->owner,
              alike_->bytes,                  static_cast<std::uint8_t>(lane),
              alike_->isWrite,                (alike_->same >> lane & 1) != 0};
    }
    Iterator &operator++() {
      alike_ ? void(left_ &= left_ - 1) : void(++next_);
      return *this;
    }
    bool operator!=(const Iterator &other) const {
      return next_ != other.next_ || left_ != other.left_;
    }

  private:
    const LaneAccess *next_;
    const AlikeLanes *alike_;
    LaneMask left_;
  };
  std::size_t size() const {
    return alike_ ? static_cast<std::size_t>(countLanes(alike_->lanes))
                  : list_.size();
  }
  Iterator begin() const {
    return {list_.data(), alike_, alike_ ? alike_->lanes : 0};
  }
  Iterator end() const { return {list_.data() + list_.size(), alike_, 0}; }

private:
  std::span<const LaneAccess> list_;
  const AlikeLanes *alike_ = nullptr;
};

/// Lanes of one instruction read or write by themselves, in this order.
struct ThreadAccess {
  static constexpr EventKind kKind = EventKind::access;
  /// Values that are told have at most this much room each, by lane.
  static constexpr std::size_t kValueBytes = 32;

  Warp &warp;
  const Op &op;
  LaneAccesses accesses;
  bool isFirst; ///< nothing was told of the instruction before
  /// What is written, where somebody asks for it; readable a cell further.
  const std::uint8_t *values = nullptr;
  std::size_t valueBytes = kValueBytes; ///< from a lane's to the next one's

  const std::uint8_t *valueOf(int lane) const {
    return values + static_cast<std::size_t>(lane) * valueBytes;
  }
};

/// Who says that an asynchronous operation is over.
struct Completion {
  enum class By : std::uint8_t {
    mbarrier,         ///< its current phase
    copyGroup,        ///< cp.async.wait_group
    bulkGroup,        ///< cp.async.bulk.wait_group
    bulkGroupRead,    ///< cp.async.bulk.wait_group.read, or without .read
    warpgroup,        ///< wgmma.wait_group
    tensorOperations, ///< tcgen05.commit
    tensorLoads,      ///< tcgen05.wait::ld
    tensorStores,     ///< tcgen05.wait::st
  };
  By by;
  Cta *cta = nullptr; ///< of the mbarrier
  /// The address of the mbarrier; the number of the warpgroup.
  std::uint32_t object = 0;
  std::uint32_t number = 0; ///< of the warpgroup's products, from 1 on
};

/// Bytes of global memory, or of shared memory from its first byte on.
struct ByteRun {
  std::uint64_t begin;
  std::size_t bytes;
};

/// An asynchronous unit will read or write for lanes of a warp. What it touches
/// is a list of runs, or of whole cells of shared memory, or of ranges of
/// tensor memory.
struct AsyncAccess {
  static constexpr EventKind kKind = EventKind::access;
  Warp &warp;
  const Op &op;
  LaneMask issuers;
  Completion over;
  bool isWrite;
  bool isThroughProxy = true; ///< the async proxy; else as threads do
  bool isAtomic = false;      ///< a reduction
  Scope scope = Scope::gpu;   ///< of a reduction
  bool isPartial = false;     ///< others will issue it too, for the same bytes
  Cta *owner = nullptr;       ///< of shared or tensor memory; null: global
  std::span<const ByteRun> runs = {};
  std::span<const PageCells> cells = {};
  std::span<const TensorRange> ranges = {};
  int swizzle = -1; ///< what a copy by a tensor map writes in; -1: no such copy
};

/// The tensor core will read an operand from shared memory in some swizzle.
struct OperandRead {
  static constexpr EventKind kKind = EventKind::access;
  Warp &warp;
  const Op &op;
  Cta &cta;
  std::uint32_t start;       ///< what the descriptor says
  std::uint32_t firstOffset; ///< of the first element, from the first byte on
  int swizzleBytes;
  bool isA; ///< else it is operand B
};

/// A copy reads a tensor map through its proxy.
struct TensorMapUse {
  static constexpr EventKind kKind = EventKind::access;
  Warp &warp;
  const Op &op;
  int lane;
  std::uint64_t address;
};

// Asynchronous operations.

/// Lanes issue operations that their groups, or a tcgen05.commit, tell of.
struct AsyncBegin {
  static constexpr EventKind kKind = EventKind::async;
  Warp &warp;
};
/// A lane closes a group of its copies, or waits for all but some groups.
struct CopyGroup {
  static constexpr EventKind kKind = EventKind::async;
  enum class What : std::uint8_t { commit, wait, waitRead };
  What what;
  Warp &warp;
  int lane;
  bool isBulk;
  std::size_t keep = 0; ///< groups that may be in flight
};
/// What a lane copied by cp.async up to some time is over: an mbarrier tells.
struct CopyArrival {
  static constexpr EventKind kKind = EventKind::async;
  Warp &warp;
  int lane;
  MbarrierState &barrier;
  std::uint32_t upTo; ///< WarpClock::now
};
/// A warp issues a wgmma.
struct WgmmaBegin {
  static constexpr EventKind kKind = EventKind::async;
  Warp &warp;
  const Op &op;
  LaneMask lanes;
  std::span<const Reg> accumulator, fragment; ///< registers it uses
};
/// A warp has waited for the first `products` of its warpgroup.
struct WgmmaEnd {
  static constexpr EventKind kKind = EventKind::async;
  Warp &warp;
  LaneMask lanes;
  const TensorCoreQueue &queue;
  std::uint32_t products;
};
/// tcgen05.ld and st of a warp.
struct TensorMoveBegin {
  static constexpr EventKind kKind = EventKind::async;
  Warp &warp;
  const Op &op;
  bool isLoad;
};
/// tcgen05.wait of a warp.
struct TensorMoveEnd {
  static constexpr EventKind kKind = EventKind::async;
  Warp &warp;
  LaneMask lanes;
  bool isLoad;
};
/// A lane commits its tcgen05 operations.
struct TensorCommit {
  static constexpr EventKind kKind = EventKind::async;
  Warp &warp;
  int lane;
  SyncPoint &handed; ///< what it hands over, kept until the arrival
};
/// They are over: an mbarrier tells.
struct TensorArrival {
  static constexpr EventKind kKind = EventKind::async;
  Warp &warp;
  int lane;
  MbarrierState &barrier;
  std::uint32_t upTo; ///< WarpClock::now at the commit
  const SyncPoint &handed;
};

// Barriers.

/// What is done with an mbarrier.
struct MbarrierEvent {
  static constexpr EventKind kKind = EventKind::barrier;
  enum class What : std::uint8_t {
    init,
    inval,
    use,    ///< any operation of a lane on one that is live
    copy,   ///< a copy will count on its current phase
    arrive, ///< lanes do
    wait,   ///< of lanes, which came true
  };
  What what;
  Warp &warp;
  const Op &op;
  LaneMask lanes;
  Cta &cta;
  std::uint32_t address;
  MbarrierState *state = nullptr; ///< init
};
/// A copy has brought bytes that an mbarrier counts.
struct MbarrierBytes {
  static constexpr EventKind kKind = EventKind::barrier;
  Warp &warp;
  const Op &op;
  Cta &cta;
  std::uint32_t address;
  std::uint32_t bytes;
};
/// A phase of an mbarrier is complete.
struct MbarrierPhase {
  static constexpr EventKind kKind = EventKind::barrier;
  MbarrierState &barrier;
};
/// Lanes arrive at a barrier of the CTA.
struct CtaBarrierArrive {
  static constexpr EventKind kKind = EventKind::barrier;
  Warp &warp;
  LaneMask lanes;
  CtaBarrier &barrier;
};
/// They have waited for the round in which they arrived.
struct CtaBarrierWait {
  static constexpr EventKind kKind = EventKind::barrier;
  Warp &warp;
  LaneMask lanes;
};
struct ClusterBarrierArrive {
  static constexpr EventKind kKind = EventKind::barrier;
  Warp &warp;
  const Op &op;
  LaneMask lanes;
  ClusterArrivals::Round &round;
};
struct ClusterBarrierWait {
  static constexpr EventKind kKind = EventKind::barrier;
  Warp &warp;
  LaneMask lanes;
  const ClusterArrivals::Round &round;
};
/// Lanes of a warp that name each other meet.
struct WarpBarrier {
  static constexpr EventKind kKind = EventKind::barrier;
  Warp &warp;
  LaneMask lanes;
};
/// Lanes know that the launches which theirs depends on have ended.
struct PrimaryWait {
  static constexpr EventKind kKind = EventKind::barrier;
  Warp &warp;
  LaneMask lanes;
};
/// A warp lets the launch behind this one begin.
struct DependentsLaunch {
  static constexpr EventKind kKind = EventKind::barrier;
  Warp &warp;
  bool &knowsPrimary; ///< set where the warp has waited itself
};

// Fences.

struct Fence {
  static constexpr EventKind kKind = EventKind::fence;
  enum class What : std::uint8_t {
    memory, ///< to its scope
    asyncShared,
    asyncGlobal,
    mbarrierInit,
    tensorMapRelease,
    tensorMapAcquire, ///< by one lane, of one map
    tensorBefore,     ///< tcgen05.fence::before_thread_sync
    tensorAfter,
  };
  What what;
  Warp &warp;
  const Op &op;
  LaneMask lanes;
  std::uint64_t address = 0; ///< of the map
};

// Allocations.

/// Columns of tensor memory, or a block of the heap.
struct Allocation {
  static constexpr EventKind kKind = EventKind::allocation;
  enum class Of : std::uint8_t { tensorMemory, heap };
  Of of;
  Warp &warp;
  const Op &op;
  LaneMask lanes;
  std::uint64_t begin; ///< the first column; the address
  std::uint64_t size;  ///< columns; bytes, 0 where a block is freed
  bool isFreed;
};

} // namespace kiln::sim
