// RaceDetector: which accesses of a launch are ordered, and which are races.
//
// One mechanism for all of memory: every access is looked up in the shadow of
// its bytes (Shadow), compared with the accesses that are there by the clocks
// of the lanes that make it (OrderStrand, OrderClock), and put beside them. An
// access of an asynchronous unit is made at its issue and belongs to the object
// that will say it is complete: an mbarrier's phase, a group of a thread, the
// products of a warpgroup. Two accesses to one byte, at least one of them a
// write, that no path orders are a finding: an error where neither relation
// orders them, a warning where only the de facto relation does, and not the PTX
// text.
//
// Clusters that cannot talk to each other are ordered each by itself, and what
// they touched in global memory is compared when they have ended
// (LaunchRaces); clusters that can share one RaceDetector.
#pragma once

#include "sim/checks/BarrierEpoch.h"
#include "sim/checks/EarlyAccesses.h"
#include "sim/clocks/AccessExtents.h"
#include "sim/clocks/AccessLog.h"
#include "sim/clocks/SharedHistory.h"
#include "sim/findings/FindingId.h"
#include "sim/machine/FindingQuota.h"
#include "sim/machine/Warp.h"
#include "sim/machine/memory/TensorMemory.h"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>

namespace kiln::sim {

class Cluster;
class Cta;
class Machine;
struct FindingObject;
struct AlikeLanes;
class Warp;
struct Op;

/// One access, or many of one instruction that are alike.
struct Access {
  Warp *warp = nullptr;
  const Op *op = nullptr;
  LaneMask issuers = 0;       ///< lanes whose knowledge counts
  Record record{};            ///< what is left behind; `bytes` is set per cell
  View view = View::generic;  ///< whose knowledge counts: generic or async
  bool isRecorded = true;     ///< else it is looked up only
  bool isSame = false;        ///< a write of what stands there already
  const char *verb = nullptr; ///< what it does; null: it reads or writes
  /// As what it was deferred, which collided with nothing and is put into the
  /// shadow now; there is no warp then. Null: it is made now.
  const LoggedAccess *logged = nullptr;
};

/// Places in the source of two accesses: findings are told once per pair.
using PlacePair = std::pair<std::uint64_t, std::uint64_t>;
PlacePair placesOf(const Machine &machine, std::uint32_t op,
                   std::uint32_t earlier);

/// Two places that race, as often as they did.
struct RaceFinding {
  FindingId id;
  Finding finding;
  PlacePair places;
  std::uint64_t count = 1;
  /// Threads of one CTA that issue the same copy; empty: it is no such finding.
  std::set<int> issuers = {};
};

/// The races that were found, each pair of places once.
struct ToldRaces {
  std::vector<RaceFinding> findings;
  FindingQuota quota;
  std::map<std::pair<FindingId, PlacePair>, std::size_t> known = {};

  /// Whether that pair is among them, or one too many; it counts as `count`
  /// more. Else it is the next finding.
  bool isTold(const Machine &machine, FindingId id, PlacePair places,
              std::uint64_t count = 1);
};

/// Whether a load is the first one of a loop of atom.cas (RaceSwap).
struct FirstOfSwap {
  bool isForSwap = false;
  /// Those that it may race with; empty: all atomics.
  std::set<const Op *> others = {};
};

class RaceDetector {
public:
  /// `keepsValues`: of what threads write to global memory.
  explicit RaceDetector(Machine &machine, bool keepsValues = false);

  bool keepsValues() const { return keepsValues_; }

  /// A new component in the block of a cluster.
  Component add(std::uint32_t cluster, const Agent &agent);
  /// The components of a warp, and those of a CTA beside its warps.
  void begin(Warp &warp);
  void begin(Cta &cta);

  // Accesses.
  /// By lanes themselves, through the generic proxy.
  Access plain(Warp &warp, const Op &op, bool isWrite);
  /// Of something that `lane` issues and that `component` completes at `time`,
  /// through the async proxy unless it is none of its operations.
  Access issued(Warp &warp, const Op &op, int lane, bool isWrite,
                Component component, std::uint32_t time, bool isAsync = true);
  /// The component and the time of a copy that counts on an mbarrier's phase.
  static std::pair<Component, std::uint32_t>
  phaseOf(const MbarrierHistory &barrier) {
    return {barrier.component, barrier.phases + 1};
  }
  /// `bytes` of shared memory from `offset` on, or of global memory.
  void touchShared(Access &access, Cta &owner, std::uint64_t offset,
                   std::size_t bytes);
  void touchGlobal(Access &access, std::uint64_t address, std::size_t bytes);
  /// Whole cells of shared memory, by the tensor core.
  void touchCells(Access &access, Cta &owner, std::span<const PageCells> cells);
  /// Some bytes of one cell.
  void touch(Access &access, ShadowedMemory &memory, std::uint64_t cell,
             std::uint16_t bytes);
  /// All bytes of some cells, where everything that an asynchronous access
  /// meets there is ordered and can be told of whole cells. Else false, and
  /// nothing is done: touch them one by one.
  bool touchAlike(Access &access, ShadowedMemory &memory,
                  std::span<const PageCells> places);

  /// What lanes of one weak access touch of a page, likewise.
  bool touchLayer(const Access &access, ShadowedMemory &memory,
                  std::uint64_t page, const Layer &touched);

  // What is deferred (RaceDeferred).
  /// Let an access wait until something comes that it may collide with. False:
  /// it is to be touched now.
  bool defer(Warp &warp, const Op &op, const AlikeLanes &alike);
  /// Some shared memory, or bytes of global memory, are about to be touched.
  void noteDirect(Cta &owner);
  void noteDirect(const Op &op, bool isWrite, std::uint64_t begin,
                  std::size_t bytes);
  /// Put what waits into the shadow: everything, or that of those instructions.
  void restoreAll();
  void restoreOf(const std::function<bool(std::uint32_t op)> &isAmong);
  /// Some bytes of cells of a page, or of one cell, that an access which had
  /// waited has touched.
  void restoreLayer(Access &access, ShadowedMemory &memory, std::uint64_t page,
                    const Layer &touched);
  void restore(Access &access, ShadowedMemory &memory, std::uint64_t cell,
               std::uint16_t bytes);
  AccessLog &deferred() { return deferred_; }
  const AccessLog &deferred() const { return deferred_; }
  /// Lanes arrive at a barrier of their CTA, which may be the last ones.
  void meet(Warp &warp, LaneMask lanes, const CtaBarrier &barrier);
  AccessExtents &extents() { return extents_; }

  // Edges.
  /// A read-modify-write sees all that were made there; a store sees nothing.
  /// Who does not look at what it returned cannot know whom it came after: the
  /// next run may have another order.
  static void observe(Warp &warp, const MemorySemantics &order, LaneMask lanes,
                      ShadowedMemory &memory, std::uint64_t address);
  /// Hand over what lanes know, as a release or what a fence made ready.
  void publish(Warp &warp, LaneMask lanes, const MemorySemantics &order,
               SyncPoint &to);
  /// Whether a strong write of `lanes` hands something over that the address
  /// does not have yet.
  static bool publishes(Warp &warp, const MemorySemantics &order,
                        LaneMask lanes, ShadowedMemory &memory,
                        std::uint64_t address);
  /// A strong access to an address.
  void synchronise(Warp &warp, const MemorySemantics &order, LaneMask lanes,
                   ShadowedMemory &memory, std::uint64_t address, bool isWrite);

  // Mbarriers.
  MbarrierHistory &initialise(Warp &warp, const Op &op, int lane, Cta &cta,
                              std::uint32_t address);
  static void invalidate(Cta &cta, std::uint32_t address);
  /// fence.mbarrier_init: cluster barriers publish the initialisations so far.
  static void fenceInits(Warp &warp);
  /// Some operation of a lane; it must be ordered after the initialisation.
  void use(Warp &warp, const Op &op, int lane, Cta &owner,
           std::uint32_t address);
  void arrive(Warp &warp, const Op &op, LaneMask lanes, Cta &owner,
              std::uint32_t address);
  void await(Warp &warp, const Op &op, LaneMask lanes, Cta &owner,
             std::uint32_t address);
  /// A copy of `lane` will count on an mbarrier's current phase.
  void expectCopy(Warp &warp, const Op &op, int lane, Cta &owner,
                  std::uint32_t address);

  // Tensor maps, which copies read through a proxy of their own.
  /// fence.proxy.tensormap::generic.release: changes so far are published.
  void releaseTensorMaps(Warp &warp);
  /// The same, acquire: the warp's copies, and those of who is ordered after
  /// it, may use the map as it is now.
  void acquireTensorMap(Warp &warp, const Op &op, int lane,
                        std::uint64_t address);
  /// A copy reads the map.
  void useTensorMap(Warp &warp, const Op &op, int lane, std::uint64_t address);

  // Tensor memory (RaceTensor).
  /// The components of a warp's tcgen05 instructions.
  const TensorQueue::Components &tensorComponents(Warp &warp);
  /// An access of a tcgen05 instruction to tensor memory, complete when
  /// `component` has got to `time`.
  Access tensorAccess(Warp &warp, const Op &op, LaneMask lanes, bool isWrite,
                      Component component, std::uint32_t time);
  void touchTensor(Access &access, Cta &owner, const TensorRange &range);
  /// tcgen05.dealloc: is everything over that has touched the columns?
  void freeTensor(Warp &warp, const Op &op, LaneMask lanes,
                  const TensorRange &range);
  /// tcgen05.commit of `lane` arrives: what it issued until `time` is over, and
  /// so is what it had waited for by then.
  static void commit(MbarrierHistory &barrier, Component component,
                     std::uint32_t time, LaneMask lane, const SyncPoint &known);

  // The end (OrderExit).
  /// Lanes leave the kernel: has everything they began been waited for?
  void leave(Warp &warp, LaneMask lanes);
  /// A CTA has ended: are there copies to it that nobody has waited for?
  void end(Cta &cta);
  /// A cluster has ended: might a CTA have left before others were done with
  /// its memory?
  void end(Cluster &cluster);

  // Launches ahead of this one that it may overlap (RaceEarly).
  /// What is done without knowing that its primary has ended; null: the launch
  /// is not dependent.
  const EarlyAccesses *early() const { return early_.get(); }
  /// Whether the warp's group knows that the primary of the launch has ended.
  bool knowsPrimary(Warp &warp) const;

  /// For tests: nothing is deferred, and no lanes are looked at together.
  static inline bool isByCell = false;

  /// What a warp reads from here on it has read then (WarpClock::now): what its
  /// lanes have done since came after it.
  void setReadAt(std::uint32_t time = ~std::uint32_t(0)) { readAt_ = time; }

  ShadowedMemory &global() { return global_; }
  const ShadowedMemory &global() const { return global_; }
  std::vector<RaceFinding> &findings() { return told_.findings; }
  const FindingQuota &quota() const { return told_.quota; }
  const Agent &agent(Component component) const;
  /// Whether that has been told of the two places; it counts as one more.
  bool isTold(FindingId id, const Access &access, const Record &earlier);
  /// A finding at an access.
  void tell(FindingId id, const Access &access, const Record &earlier,
            const std::string &message, const FindingObject &object);
  /// Who made an access, in words.
  std::string actorOf(const Record &record) const;

private:
  enum class Verdict : std::uint8_t {
    ordered,
    strong,
    deFacto,
    unordered,
    announced, ///< strong ones that a flag seems to order and no fence does
  };
  Verdict judge(const Access &access, const Record &earlier,
                std::uint16_t overlap) const;
  bool isOrderedStrictly(const Access &access, const Record &earlier,
                         std::uint16_t overlap, View view) const;
  bool isOrderedDeFacto(const Access &access, const Record &earlier,
                        std::uint16_t overlap, View view) const;
  /// Whether a read-modify-write has seen the strong write `earlier`, and is
  /// itself ordered before the access: causality order goes through it.
  bool isObservedBefore(const Access &access, const Record &earlier,
                        std::uint16_t overlap, const ShadowedMemory &memory,
                        std::uint64_t cell) const;
  bool isMutual(const Access &access, const Record &earlier) const;
  /// Operations of one thread that the tensor core does in order.
  bool isPipelined(const Access &access, const Record &earlier) const;
  /// Whether it is a strong write that no member of the crowd can race with.
  static bool isOneOf(const Crowd &crowd, const Access &access);
  /// Add a strong write to those that are there.
  static void join(const Access &access, Crowd &crowd);
  /// cp.async writes what a wgmma reads: released kernels have no proxy fence
  /// between the two.
  bool isCopyBeforeProduct(const Access &access, const Record &earlier) const;
  /// Whether one is the plain load that a loop of atom.cas begins with, and the
  /// other an atomic (RaceSwap).
  bool isFirstOfSwap(const Access &access, const Record &earlier) const;
  /// Whether a store follows a load that is over, by the word of a flag alone:
  /// strong stores and loads without release and acquire.
  bool isFlaggedAfterRead(const Access &access, const Record &earlier,
                          std::uint16_t overlap) const;
  /// Whether the value of a load is used before a flag tells of it: before the
  /// next barrier of the CTA, or with one behind it and before a strong store,
  /// as they stand in the program.
  bool isUsedAtOnce(std::uint32_t load) const;
  /// Whether tensormap.cp_fenceproxy has read what that thread wrote.
  bool isCopiedSince(const Record &earlier, std::uint16_t overlap,
                     ShadowedMemory &memory, std::uint64_t cell) const;
  /// Whether two stores of threads leave the same bytes, whoever comes last.
  bool isSameValue(const Access &access, const Record &earlier) const;
  static bool isReplaced(const Access &access, const Record &earlier);
  static bool isSameInstruction(const Access &access, const Record &earlier);
  /// Whether everything in an earlier layer is ordered before what is touched.
  bool isOrderedAfter(const Access &access, const Layer &touched,
                      Layer &earlier) const;
  /// The same of what threads have read.
  bool isOrderedAfterReads(const Access &access, const Layer &touched,
                           Layers &reads) const;
  /// Put a write beside the layers of a page, all of which it is ordered after.
  static void putLayer(Shadow::Page &page, const Layer &touched,
                       std::uint32_t edge);
  /// A strong load of data that is ordered by nothing but the value of a flag.
  Verdict judgeAnnounced(const Access &access, const Record &earlier,
                         std::uint16_t overlap) const;
  void reportAnnounced(Access &access, const Record &suspect,
                       ShadowedMemory &memory, std::uint64_t cell);
  void touchRun(Access &access, ShadowedMemory &memory, std::uint64_t begin,
                std::size_t bytes);
  void put(Access &access, ShadowedMemory &memory, Cell &cell,
           std::uint16_t bytes);

  /// The same of those that have fallen (AccessExtents).
  void restoreFallen();
  /// A strong access whose lanes neither hand anything over nor are handed
  /// anything, and which no other one of the kind can race with.
  static bool isQuietAtomic(Warp &warp, const Op &op,
                            const ShadowedMemory &memory);
  static void observeEach(Warp &warp, const Op &op, const AlikeLanes &alike,
                          ShadowedMemory &memory);
  bool deferGlobal(Warp &warp, const Op &op, const AlikeLanes &alike);
  bool deferShared(Warp &warp, const Op &op, const AlikeLanes &alike);
  LoggedAccess logOf(Warp &warp, const Op &op, const AlikeLanes &alike);
  /// What threads do to the shared memory of a CTA between barriers; null: in
  /// this launch more than barriers may matter.
  BarrierEpoch *epochOf(const Cta &cta);
  std::uint32_t firstThreadOf(Component lanes) const {
    return agent(lanes).number * kLanes;
  }
  void goDirect(BarrierEpoch &epoch, Cta &cta);

  /// Keep an access to global memory that the primary's may collide with.
  void noteEarly(const Access &access, std::uint64_t cell, std::uint16_t bytes);

  void reportOverBarrier(const Access &access, const ShadowedMemory &memory,
                         std::uint64_t cell, std::uint16_t bytes);
  void report(const Access &access, const Record &earlier,
              std::uint16_t overlap, const ShadowedMemory &memory,
              std::uint64_t cell, Verdict verdict);
  /// The thread that has issued the copy `earlier`, where `access` is the same
  /// instruction of another thread of its CTA, with no wait between; -1: none.
  int issuerOfSame(const Access &access, const Record &earlier) const;
  /// One more thread that issues a copy which one is enough for.
  void reportRepeated(FindingId id, const Access &access, const Record &earlier,
                      int other, const std::string &place,
                      const FindingObject &object);
  /// The rule that orders them in deFacto.
  FindingId ruleOf(const Access &access, const Record &earlier,
                   std::uint16_t overlap) const;
  FindingId errorOf(const Access &access, const Record &earlier,
                    std::uint16_t overlap) const;
  /// A finding about something that was begun and not finished.
  void tellLeft(FindingId id, Warp &warp, const Op &op, int lane,
                const std::string &message, const FindingObject &object);
  /// Whether the warpgroup of a product has waited for it.
  bool isAwaited(const Access &access, const Record &earlier) const;
  bool isUpdate(const Op &one, const Op &two) const;
  const Op *relaxedWaitFor(const Access &access, const Record &earlier) const;
  std::string missingEdge(FindingId id, const Access &access,
                          const Record &earlier) const;
  std::string describe(const Record &record) const;
  FindingObject sharedObject(std::uint32_t address) const;

  /// Call `body(record)` for the writes of this launch to a tensor map.
  template <typename Body>
  void forEachMapWrite(std::uint64_t address, Body &&body);

  Machine &machine_;
  bool keepsValues_;
  /// A lane has acquired what somebody wrote to a map.
  struct AcquiredMap {
    Record write, acquire;
  };
  std::map<std::uint64_t, std::vector<AcquiredMap>>
      acquiredMaps_;                                   ///< by address
  std::map<Component, std::uint32_t> releasedMaps_;    ///< up to which time
  std::map<std::uint32_t, std::vector<Agent>> agents_; ///< by block
  /// Those of the block that was asked for last.
  std::vector<Agent> *lastAgents_ = nullptr;
  std::uint32_t lastBlock_ = 0;
  ShadowedMemory global_;
  AccessLog deferred_; ///< accesses to global memory
  AccessExtents extents_;
  std::map<const Cta *, BarrierEpoch> epochs_;
  std::optional<bool> hasEpochs_;
  const Cta *lastCta_ = nullptr; ///< whose epoch was asked for last
  BarrierEpoch *lastEpoch_ = nullptr;
  unsigned wipes_ = 0;
  std::unique_ptr<EarlyAccesses> early_;
  ToldRaces told_;
  std::uint32_t readAt_ = ~std::uint32_t(0);
  /// Loads that were asked of.
  mutable std::map<const Op *, FirstOfSwap> firstOfSwap_;
  mutable std::map<std::uint32_t, bool> usedAtOnce_;
};

} // namespace kiln::sim
