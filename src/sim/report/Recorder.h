// Recorder: draw the timeline of a cluster while it runs.
//
// It keeps a clock for each warp and the time at which each thing that can be
// waited for happens: phases of mbarriers, groups of copies, products, rounds
// of barriers. A warp's clock goes on by one for each of its instructions and
// jumps where it waits. The order in which the simulator happens to run things
// does not matter to it.
#pragma once

#include "kiln/check/timeline.h"
#include "sim/machine/events/Events.h"
#include "sim/program/Program.h"

#include <deque>
#include <tuple>

namespace kiln::sim {

class Cta;

class Recorder {
public:
  /// Called around each instruction that a warp executes.
  void before(Warp &warp, const Op &op, LaneMask active);
  void after(Warp &warp, const Op &op, LaneMask active, Step step);
  /// Called for what copies begin to touch.
  void take(const AsyncAccess &event);
  /// All events, slots filled in; by CTA, then by start.
  std::vector<Timeline::Event> take();
  /// Call `body(op, units)` for each wait so far.
  template <typename Body> void forEachWait(Body &&body) const {
    for (const Drawn &drawn : drawn_)
      if (drawn.event.kind == Timeline::Kind::wait)
        body(*drawn.op, drawn.event.end - drawn.event.start);
  }

  using Time = std::uint64_t;
  /// Of a warp.
  Time now(const Warp &warp);
  /// When a phase of an mbarrier was complete, as far as that is known; else 0.
  Time phaseTime(const Cta &cta, std::uint32_t address,
                 std::uint32_t phase) const;

private:
  using Key = std::pair<const Cta *, std::uint32_t>; ///< a shared address

  struct Barrier {
    std::map<std::uint32_t, Time> phases; ///< when they were complete
    std::uint32_t life = 0;               ///< how often it was initialised
    bool hasCopies = false;
  };
  struct WarpClock {
    std::int64_t skew = 0; ///< beside the instructions it has executed
    bool hasCopies = false;
    std::size_t lastAccess = ~std::size_t(0); ///< of global memory, an event
  };
  struct Groups {
    Time open = 0;
    std::deque<Time> committed;
  };
  /// An event whose slot is known when all barriers are.
  struct Drawn {
    Timeline::Event event;
    const Cta *cta;
    std::uint32_t barrier = 0; ///< its address; 0: none
    /// Loads: the phase they belong to, of which life of the barrier.
    std::uint32_t phase = 0, life = 0;
    const Op *op = nullptr;
  };

  Drawn &draw(const Warp &warp, const Op &op, Timeline::Row row,
              Timeline::Kind kind, Time start, Time end);
  /// The warp stands still until `time`.
  void waitUntil(Warp &warp, const Op &op, Timeline::Awaited awaited, Time time,
                 std::uint32_t barrier = 0);
  /// The copy engine works on so many bytes; returns when it is done.
  Time useCopyEngine(Warp &warp, std::uint64_t bytes, Time &start);
  void beginLoad(const AsyncAccess &event);
  void beginStore(const AsyncAccess &event);
  void beginAsyncCopies(Warp &warp, const Op &op, LaneMask active);
  void commitCopies(Warp &warp, const Op &op, LaneMask active);
  bool isComplete(const Drawn &drawn) const;
  /// The mbarrier of the copy that has filled what a descriptor names; 0: none.
  std::uint32_t barrierOfTile(Warp &warp, Reg descriptor, int lane) const;
  void beginProduct(Warp &warp, const Op &op, LaneMask active);
  void beginTensorProduct(Warp &warp, const Op &op, int lane);
  void arrive(Warp &warp, const Op &op, int lane);
  void noteAccess(Warp &warp, const Op &op);
  void endBarrierWait(Warp &warp, const Op &op, LaneMask active);
  void endCopyWait(Warp &warp, const Op &op, LaneMask active);

  std::map<const Warp *, WarpClock> clocks_;
  std::map<Key, Barrier> barriers_;
  /// Groups of bulk copies and of cp.async, by lane.
  std::map<std::tuple<const Warp *, int, bool>, Groups> groups_;
  std::map<const Cta *, Time> copyEngine_; ///< free from then on
  /// The load that was begun last: a multicast tells of each CTA it reaches.
  struct Load {
    const Warp *warp = nullptr;
    std::uint64_t instruction = 0;
    int lane = 0;
    std::size_t drawn = 0;
    Time done = 0;
  };
  Load lastLoad_;
  /// The last cp.async of a CTA, an event; they follow one another.
  std::map<const Cta *, std::size_t> asyncCopies_;
  /// By CTA and warpgroup; that of tcgen05 has the number -1.
  std::map<std::pair<const Cta *, int>, Time> tensorCore_;
  /// When the tcgen05 products that a lane has issued are over.
  std::map<std::pair<const Warp *, int>, Time> tensorProducts_;
  /// Products by CTA, warpgroup and number: warps that issued, when it is done.
  struct Product {
    int warps = 0;
    Time issued = 0, done = 0;
  };
  std::map<std::tuple<const Cta *, int, std::uint64_t>, Product> products_;
  /// Rounds of the barriers of a CTA (number) and of the cluster (-1).
  std::map<std::tuple<const Cta *, int, std::uint32_t>, Time> rounds_;
  /// Where copies went: by first address, the last one and the mbarrier.
  std::map<Key, std::pair<std::uint32_t, std::uint32_t>> tiles_;
  std::uint64_t awaited_ = 0; ///< products that a wait covers
  std::vector<Drawn> drawn_;
};

} // namespace kiln::sim
