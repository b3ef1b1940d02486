// RaceSync: the edges: barriers, mbarriers, strong accesses and fences.
#include "sim/checks/RaceDetector.h"
#include "sim/machine/Machine.h"
#include "sim/program/Effect.h"

#include <algorithm>
#include <fmt/format.h>

namespace kiln::sim {

void RaceDetector::publish(Warp &warp, LaneMask lanes,
                           const MemorySemantics &order, SyncPoint &to) {
  LaneClocks &clocks = warp.group().clocks;
  if (order.isRelease)
    return clocks.release(to, warp.clock, lanes);
  auto scope = static_cast<std::size_t>(order.scope);
  if (const auto &ready = clocks.deFacto().fenced[scope])
    to.deFacto.clock.join(*ready);
  clocks.forEachPart(lanes, [&](LaneMask, const Knowledge &knowledge) {
    if (const auto &ready = knowledge.fenced[scope])
      to.strict.clock.join(*ready);
  });
}

/// A strong read has seen what was published: known at once by an acquire, by
/// a later fence otherwise. In practice a read-modify-write is enough.
static void see(Warp &warp, const MemorySemantics &order, LaneMask lanes,
                const SyncPoint &from, Scope reach, bool isReadModifyWrite) {
  if (from.isEmpty())
    return;
  LaneClocks &clocks = warp.group().clocks;
  if (order.isAcquire)
    return clocks.acquire(from, warp.clock, lanes);
  auto scope = static_cast<std::size_t>(reach);
  if (isReadModifyWrite)
    clocks.deFacto().learn(from.deFacto, warp.clock);
  else
    clocks.deFacto().seen[scope].join(from.deFacto.clock);
  clocks.changeParts(lanes, [&](LaneMask, Knowledge &knowledge) {
    knowledge.seen[scope].join(from.strict.clock);
  });
}

/// A strong write says something of the strong stores before it to whoever
/// reads it, though without a release nothing follows from that. So does a
/// counter by which the last one knows that all have added to a sum.
static void announce(Warp &warp, const MemorySemantics &order,
                     ShadowedMemory &memory, std::uint64_t address) {
  // So many flags have a kernel's threads; more would take memory for nothing.
  constexpr std::size_t kAddresses = 1 << 16;
  warp.clock.hasStrongStores |= !order.isAtomic;
  bool isSaying = warp.clock.hasStrongStores || order.isCounter;
  if (!isSaying || memory.locations.size() >= kAddresses)
    return;
  warp.group().clocks.announce(memory.locations[address].announced, warp.clock);
}

/// Call `body(version)` for what fences have made ready for the writes of
/// `lanes` in that scope.
template <typename Body>
static void forEachReady(Warp &warp, LaneMask lanes, Scope scope, Body &&body) {
  auto visit = [&](const FencedClock &handed) {
    if (const auto &ready = handed.fenced[static_cast<std::size_t>(scope)])
      body(ready->version());
  };
  const LaneClocks &clocks = warp.group().clocks;
  visit(clocks.deFacto());
  clocks.forEachPart(
      lanes, [&](LaneMask, const Knowledge &knowledge) { visit(knowledge); });
}

/// Whether all that a write of `lanes`, which is no release, would hand over is
/// there.
static bool isPublished(Warp &warp, LaneMask lanes, Scope scope,
                        const Published *published) {
  bool isAll = true;
  forEachReady(warp, lanes, scope, [&](std::uint64_t version) {
    isAll &= published && std::binary_search(published->fenced.begin(),
                                             published->fenced.end(), version);
  });
  return isAll;
}

/// It is there from now on.
static void notePublished(Warp &warp, LaneMask lanes, Scope scope,
                          Published &published) {
  constexpr std::size_t kMost = 4096;
  auto &fenced = published.fenced;
  if (fenced.size() >= kMost)
    fenced.clear();
  forEachReady(warp, lanes, scope, [&](std::uint64_t version) {
    auto place = std::lower_bound(fenced.begin(), fenced.end(), version);
    if (place == fenced.end() || *place != version)
      fenced.insert(place, version);
  });
}

bool RaceDetector::publishes(Warp &warp, const MemorySemantics &order,
                             LaneMask lanes, ShadowedMemory &memory,
                             std::uint64_t address) {
  if (order.isRelease)
    return true;
  if (!warp.group().clocks.hasFenced(Scope::cta))
    return false;
  auto found = memory.locations.find(address);
  for (Scope reach : {Scope::cta, Scope::cluster, Scope::gpu}) {
    if (reach > order.scope)
      break;
    Published *published = found == memory.locations.end()
                               ? nullptr
                               : found->second.find(reach, warp.clock);
    if (!isPublished(warp, lanes, reach, published))
      return true;
  }
  return false;
}

void RaceDetector::observe(Warp &warp, const MemorySemantics &order,
                           LaneMask lanes, ShadowedMemory &memory,
                           std::uint64_t address) {
  // So many counters have a kernel's threads; the bins of a large histogram
  // are not told apart from then on.
  constexpr std::size_t kAddresses = 1 << 12;
  if (order.isAtomic && !(order.isReturning && order.isHeeded))
    return;
  if (memory.observations.size() >= kAddresses &&
      !memory.observations.find(address))
    return;
  Observation &last = memory.observations[address];
  last.isOfAll &= order.isAtomic;
  last.record = {.time = warp.clock.now,
                 .lanes = lanes,
                 .component = warp.clock.lanes,
                 .op = 0,
                 .bytes = 0xffff,
                 .flags = 0};
}

void RaceDetector::synchronise(Warp &warp, const MemorySemantics &order,
                               LaneMask lanes, ShadowedMemory &memory,
                               std::uint64_t address, bool isWrite) {
  constexpr Scope kReaches[] = {Scope::cta, Scope::cluster, Scope::gpu};
  auto found = memory.locations.empty() ? memory.locations.end()
                                        : memory.locations.find(address);
  bool isRead = !isWrite || order.isReturning;
  if (isRead && found != memory.locations.end()) {
    for (Scope reach : kReaches)
      if (Published *published = reach <= order.scope
                                     ? found->second.find(reach, warp.clock)
                                     : nullptr)
        see(warp, order, lanes, published->point, reach, isWrite);
    warp.group().clocks.hear(found->second.announced);
  }
  if (!isWrite)
    return;
  observe(warp, order, lanes, memory, address);
  // A store puts an end to what was published there; a read-modify-write
  // carries it on.
  if (!order.isAtomic && found != memory.locations.end())
    memory.locations.erase(found);
  announce(warp, order, memory, address);
  for (Scope reach : kReaches) {
    // A fence reaches every scope below its own.
    if (reach > order.scope ||
        !(order.isRelease || warp.group().clocks.hasFenced(reach)))
      return;
    Published &published = memory.locations[address].of(reach, warp.clock);
    if (!order.isRelease) {
      if (isPublished(warp, lanes, reach, &published))
        continue;
      notePublished(warp, lanes, reach, published);
    }
    MemorySemantics part = order;
    part.scope = reach;
    publish(warp, lanes, part, published.point);
  }
}

MbarrierHistory &RaceDetector::initialise(Warp &warp, const Op &op, int lane,
                                          Cta &cta, std::uint32_t address) {
  MbarrierHistory &barrier = cta.mbarrierHistory[address];
  if (!barrier.isInitialised())
    barrier.component =
        add(cta.cluster().number(),
            {Agent::Kind::mbarrier, cta.index(), address, cta.number(),
             static_cast<std::uint32_t>(cta.cluster().number())});
  Access access = plain(warp, op, /*isWrite=*/true);
  barrier.init = access.record;
  barrier.init.lanes = LaneMask(1) << lane;
  barrier.init.bytes = 0xff;
  barrier.initFencedIn = ~0u;
  std::size_t half = (address - kFirstSharedAddress) / 8;
  cta.shadow.barriers.resize(cta.shared.size() / Shadow::kCellBytes + 1);
  cta.shadow.barriers[half / 2] |= 1u << half % 2;
  barrier.arriving = {};
  barrier.completed = {};
  barrier.observed = barrier.phases;
  barrier.seen.clear();
  return barrier;
}

void RaceDetector::invalidate(Cta &cta, std::uint32_t address) {
  std::size_t half = (address - kFirstSharedAddress) / 8;
  cta.shadow.barriers[half / 2] &= ~(1u << half % 2);
}

void RaceDetector::fenceInits(Warp &warp) {
  Cta &cta = warp.cta();
  // The first fence behind an init counts; another one takes nothing away.
  for (auto &[address, barrier] : cta.mbarrierHistory)
    if (barrier.init.component == warp.clock.lanes &&
        barrier.initFencedIn == ~0u)
      barrier.initFencedIn = cta.cluster().barrierGeneration;
}

void RaceDetector::use(Warp &warp, const Op &op, int lane, Cta &owner,
                       std::uint32_t address) {
  MbarrierHistory &barrier = owner.mbarrierHistory[address];
  if (!barrier.isInitialised())
    return; // that is a finding by itself
  Access access{.warp = &warp, .op = &op, .issuers = LaneMask(1) << lane};
  access.record.component = warp.clock.lanes;
  access.record.lanes = access.issuers;
  access.record.op = barrier.init.op;
  if (warp.clock.clusterBarriers > barrier.initFencedIn)
    return;
  Verdict verdict = judge(access, barrier.init, 0xff);
  if (verdict == Verdict::ordered)
    return;
  bool isError = verdict == Verdict::unordered;
  FindingId id = FindingId::mbarrierInitOrder;
  if (!isError)
    id = ruleOf(access, barrier.init, 0xff);
  if (isTold(id, access, barrier.init))
    return;
  std::string missing = missingEdge(id, access, barrier.init);
  if (isError)
    missing = &owner == &warp.cta()
                  ? "a barrier of the CTA (bar.sync) between them"
                  : "fence.mbarrier_init.release.cluster and a cluster "
                    "barrier between them";
  tell(id, access, barrier.init,
       fmt::format(
           "this uses the mbarrier at {}, which {} initialises; {} "
           "orders the two; missing: {}",
           machine_.findings().describeShared(address), describe(barrier.init),
           isError ? "nothing" : "only released hardware, not the PTX text,",
           missing),
       sharedObject(address));
}

/// Something that a lane does with the current phase of an mbarrier.
static OnMbarrier begun(Warp &warp, const Op &op, int lane,
                        const MbarrierHistory &barrier) {
  Record record{.time = warp.clock.now,
                .lanes = LaneMask(1) << lane,
                .component = warp.clock.lanes,
                .op = static_cast<std::uint32_t>(&op - warp.code().ops.data()),
                .bytes = 0xff,
                .flags = Record::kWrite};
  return {&warp, lane, record, barrier.phases + 1, warp.clock.clusterBarriers};
}

void RaceDetector::expectCopy(Warp &warp, const Op &op, int lane, Cta &owner,
                              std::uint32_t address) {
  MbarrierHistory &barrier = owner.mbarrierHistory[address];
  barrier.copies.push_back(begun(warp, op, lane, barrier));
  // st.async is a store of the thread's.
  bool isCopy = op.effect->isTensor || op.effect->size.isValid();
  if (!isCopy || !barrier.isInitialised() || barrier.initFencedIn != ~0u)
    return;
  Access access{.warp = &warp, .op = &op, .issuers = LaneMask(1) << lane};
  access.view = View::asyncShared;
  access.record.component = barrier.component;
  const Record &init = barrier.init;
  if (isOrderedStrictly(access, init, 0xff, View::asyncShared))
    return;
  // Whoever is not the thread that initialised has met it at a barrier.
  bool isOwn = init.component == warp.clock.lanes &&
               init.lanes == access.issuers &&
               warp.clock.lastMeeting < init.time;
  FindingId id = isOwn ? FindingId::mbarrierInitFence
                       : FindingId::mbarrierInitFenceBarrier;
  if (isTold(id, access, init))
    return;
  tell(id, access, init,
       fmt::format("this copy completes on the mbarrier at {}, which {} "
                   "initialises; missing: fence.mbarrier_init.release.cluster "
                   "or fence.proxy.async behind the initialisation{}",
                   machine_.findings().describeShared(address), describe(init),
                   isOwn ? "" : "; only a barrier stands between"),
       sharedObject(address));
}

void RaceDetector::arrive(Warp &warp, const Op &op, LaneMask lanes, Cta &owner,
                          std::uint32_t address) {
  MbarrierHistory &barrier = owner.mbarrierHistory[address];
  MbarrierHistory::Phase &phase = barrier.arriving;
  bool isNear = &owner == &warp.cta();
  if (barrier.observed < barrier.phases)
    tellLeft(FindingId::mbarrierUnobserved, warp, op, firstLane(lanes),
             fmt::format("this arrives in phase {} of the mbarrier at {}, and "
                         "nobody has waited for phase {}: no test_wait or "
                         "try_wait came true for it",
                         barrier.phases,
                         machine_.findings().describeShared(address),
                         barrier.phases - 1),
             sharedObject(address));
  if (!isNear) {
    ++warp.clock.now;
    OnMbarrier arrival = begun(warp, op, firstLane(lanes), barrier);
    arrival.record.lanes = lanes;
    std::erase_if(barrier.remoteArrivals, [&](const OnMbarrier &earlier) {
      return earlier.record.component == arrival.record.component;
    });
    barrier.remoteArrivals.push_back(arrival);
  }
  SyncPoint &to = isNear                                 ? phase.near
                  : op.semantics.scope >= Scope::cluster ? phase.far
                                                         : phase.plain;
  publish(warp, lanes, op.semantics, to);
}

void RaceDetector::await(Warp &warp, const Op &op, LaneMask lanes, Cta &owner,
                         std::uint32_t address) {
  MbarrierHistory &barrier = owner.mbarrierHistory[address];
  LaneClocks &clocks = warp.group().clocks;
  barrier.observed = barrier.phases;
  barrier.seen[warp.clock.lanes] = barrier.phases;
  // Who does not look at the answer has waited for nothing.
  if (op.isUnheeded)
    return;
  auto isObserved = [&](const OnMbarrier &one) {
    return one.phase <= barrier.observed;
  };
  std::erase_if(barrier.copies, isObserved);
  std::erase_if(barrier.remoteArrivals, isObserved);
  const MbarrierHistory::Phase &phase = barrier.completed;
  if (op.semantics.isAcquire) {
    clocks.complete(barrier.component, {.all = barrier.phases}, lanes);
  } else {
    // The copies are over, and a fence must make it known.
    barrier.relaxedWait = &op;
    SyncPoint copies;
    for (FencedClock *handed : {&copies.strict, &copies.deFacto})
      for (View view : {View::generic, View::completed})
        handed->clock.learn(view, barrier.component, {.all = barrier.phases});
    see(warp, op.semantics, lanes, copies, Scope::cta, false);
  }
  clocks.learnCommitted(phase.committed, lanes);
  see(warp, op.semantics, lanes, phase.near, Scope::cta, false);
  // What was waited for before the arrival is finished, whatever the scope: a
  // slot that products have read, or a copy has filled, may be filled again.
  // De facto so may tiles be multiplied that threads wrote and fenced for it.
  auto learnCompleted = [&](const SyncPoint &from) {
    clocks.deFacto().learnCompleted(from.deFacto.clock, warp.clock);
    clocks.deFacto().clock.joinOnly(View::asyncShared, from.deFacto.clock);
    clocks.changeParts(lanes, [&](LaneMask, Knowledge &knowledge) {
      knowledge.learnCompleted(from.strict.clock, warp.clock);
    });
  };
  if (op.semantics.scope >= Scope::cluster)
    see(warp, op.semantics, lanes, phase.far, Scope::cluster, false);
  else
    learnCompleted(phase.far);
  learnCompleted(phase.plain);
}

} // namespace kiln::sim
