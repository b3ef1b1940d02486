// LaneClocks: what the lanes of a group know of the order of accesses.
//
// Everything is kept twice. The strict relation has the edges of the PTX text:
// lanes of a warp are threads of their own, and know of each other only through
// bar.warp.sync and the barriers. The de facto relation adds what hardware and
// compilers rely on; there, lanes that run together know of each other. So a
// group has one practical knowledge, and one strict knowledge per set of lanes
// that have learnt the same: mostly a single one.
#pragma once

#include "sim/clocks/VectorClock.h"
#include "sim/program/Lazy.h"
#include "sim/program/MemorySemantics.h"
#include "support/limits/Recycled.h"

namespace kiln::sim {

/// What is known, and what fences have to do with it.
struct FencedClock {
  Clock clock;
  /// What a fence has made ready to be published by a strong write, by scope.
  std::array<std::shared_ptr<const Clock>, kScopes> fenced;
  /// What strong reads have seen, until a fence makes it known, by scope.
  std::array<Clock, kScopes> seen;
  /// What would be known if every strong write were a release and every strong
  /// read an acquire; kept de facto only.
  Clock apparent;

  bool isEmpty() const { return clock.isEmpty(); }
  bool isSame(const FencedClock &other) const;
  /// Barriers are cumulative: a fence or a strong read of one thread counts for
  /// the one that goes on after the barrier.
  void join(const FencedClock &other);
};

/// What is handed over where threads meet: a barrier's round, a phase of an
/// mbarrier, the value of an atomic.
struct SyncPoint {
  FencedClock strict, deFacto;

  bool isEmpty() const { return strict.isEmpty() && deFacto.isEmpty(); }
  void join(const SyncPoint &other) {
    strict.join(other.strict);
    deFacto.join(other.deFacto);
  }
};

/// A warp as the order sees it.
struct WarpClock {
  Component lanes = 0;                ///< what its lanes do themselves
  Component copies = 0;               ///< cp.async, by the time of their issue
  Component bulkWrites = 0;           ///< bulk copies of its threads, likewise
  Component bulkReads = 0;            ///< of their sources
  LaneMask started = 0;               ///< the lanes it has
  std::uint32_t now = 0;              ///< memory instructions so far
  std::uint32_t lastEdge = 0;         ///< when something was last handed over
  std::uint32_t lastParting = 0;      ///< when lanes last parted or met
  std::uint32_t cta = 0, cluster = 0; ///< numbers in the launch
  std::uint32_t clusterBarriers = 0;  ///< waited for so far
  std::uint32_t clusterArrival = 0;   ///< when it last arrived at that barrier
  /// When it last arrived at a barrier of the CTA or the cluster that it has
  /// passed since.
  std::uint32_t lastMeeting = 0;
  bool hasStrongStores = false; ///< stores that are no atomics
  /// Time of each commit that no wait has covered.
  PerLane<std::vector<std::uint32_t>> copyCommits, bulkCommits;
};

/// What some lanes know in one relation.
struct Knowledge : FencedClock {
  /// Of their own warp, besides what each did itself.
  std::array<Epoch, kViews> own;
  /// Up to when the async views know what each did itself.
  std::array<std::uint32_t, kViews> self{};
  /// What their tcgen05 instructions are ordered after. It is not handed over:
  /// tcgen05.fence::before_thread_sync puts it into `clock`, and
  /// fence::after_thread_sync takes it from there.
  Clock tensor;

  /// How far a component other than the own warp's lanes is known.
  const Epoch *find(View view, Component component) const {
    return view == View::tensor ? tensor.find(View::generic, component)
                                : clock.find(view, component);
  }
  bool isSame(const Knowledge &other) const;
  /// Whether a lane knows what `lanes` of its warp did at `time`.
  bool coversOwn(View view, std::uint32_t time, LaneMask lanes,
                 LaneMask lane) const;
  /// Lanes that were apart know what each of the others does.
  void meet(const Knowledge &other, LaneMask lanes, LaneMask others);
  /// Learn what was handed over, its facts about the own warp too.
  void learn(const FencedClock &handed, const WarpClock &warp);
  /// The same, of what is completed alone.
  void learnCompleted(const Clock &handed, const WarpClock &warp);
  /// Hand over, with what `lanes` of the warp have done up to now.
  void publish(FencedClock &to, const WarpClock &warp, LaneMask lanes) const;
  void fenceProxy(View to, const WarpClock &warp);
  void fence(Scope scope, const WarpClock &warp, LaneMask lanes);

private:
  /// Put down for `lanes` what each knows of itself.
  void spellOut(LaneMask lanes);
};

/// What a group of lanes knows.
class LaneClocks {
public:
  LaneClocks() = default;
  explicit LaneClocks(LaneMask lanes) : lanes_(lanes), parts_{{lanes, {}}} {}

  LaneMask lanes() const { return lanes_; }
  const Knowledge &deFacto() const { return deFacto_; }
  Knowledge &deFacto() { return deFacto_; }

  /// Call `body(lanes, knowledge)` for the strict knowledge of `lanes`.
  template <typename Body> void forEachPart(LaneMask lanes, Body &&body) const {
    for (const Part &part : parts_)
      if (part.lanes & lanes)
        body(part.lanes & lanes, part.knowledge);
  }
  /// The same, to change it: parts are split where `lanes` names some of one.
  template <typename Body> void changeParts(LaneMask lanes, Body &&body) {
    std::size_t count = parts_.size();
    for (std::size_t i = 0; i < count; ++i) {
      LaneMask rest = parts_[i].lanes & ~lanes;
      if (rest == parts_[i].lanes)
        continue;
      if (rest) {
        Part other{rest, parts_[i].knowledge};
        parts_[i].lanes &= lanes;
        parts_.push_back(std::move(other));
      }
      body(parts_[i].lanes, parts_[i].knowledge);
    }
  }

  /// The lanes of `taken` go their own way.
  LaneClocks split(LaneMask taken, WarpClock &warp);
  /// Lanes meet again.
  void meet(LaneClocks &&other, WarpClock &warp);
  /// Lanes have left the kernel.
  void drop(LaneMask lanes);

  /// Hand over what `lanes` know and have done.
  void release(SyncPoint &to, WarpClock &warp, LaneMask lanes) const;
  void acquire(const SyncPoint &from, const WarpClock &warp, LaneMask lanes);
  /// A barrier that all of `lanes` pass, and nobody else.
  void syncLanes(LaneMask lanes, WarpClock &warp);
  /// Something asynchronous is known to be complete.
  void complete(Component component, const Epoch &known, LaneMask lanes);
  /// The same of tensor memory, by tcgen05.wait: other threads know of it by
  /// the text when a fence stands behind.
  void completeTensor(Component component, const Epoch &known, LaneMask lanes);
  /// What tcgen05.commit has told of an mbarrier's phase.
  void learnCommitted(const Clock &committed, LaneMask lanes);
  /// tcgen05.fence::before_thread_sync and ::after_thread_sync
  void fenceTensorBefore(LaneMask lanes);
  void fenceTensorAfter(LaneMask lanes);
  void fenceProxy(View to, WarpClock &warp, LaneMask lanes);
  void fence(Scope scope, WarpClock &warp, LaneMask lanes);
  /// Whether a fence has made something ready for strong writes of that scope.
  bool hasFenced(Scope scope) const;
  /// What a strong write of these lanes seems to say, fence or not.
  void announce(Clock &to, const WarpClock &warp) const;
  void hear(const Clock &announced) { deFacto_.apparent.join(announced); }

private:
  struct Part {
    LaneMask lanes;
    Knowledge knowledge;
  };
  /// Parts that have learnt the same become one.
  void mergeParts();

  LaneMask lanes_ = 0;
  Knowledge deFacto_;
  std::vector<Part, RecycledAllocator<Part>> parts_;
};

} // namespace kiln::sim
