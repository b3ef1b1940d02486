// RaceReport: a race in words: both places, the bytes, and the missing edge.
#include "sim/checks/RaceDetector.h"
#include "sim/machine/Machine.h"
#include "sim/program/Effect.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace kiln::sim {

/// Whether a thread of the CTA that has left knew of the access, which was its
/// own or one that it had waited for.
static bool isKnownToGone(const Access &access, const Record &earlier) {
  const Clock &left = access.warp->cta().left.deFacto.clock;
  const Epoch *known = left.find(View::completed, earlier.component);
  return known && known->covers(earlier.time, earlier.lanes);
}

FindingId RaceDetector::ruleOf(const Access &access, const Record &earlier,
                               std::uint16_t overlap) const {
  if (agent(earlier.component).kind == Agent::Kind::tensorLoads &&
      !isOrderedStrictly(access, earlier, overlap, View::completed))
    return FindingId::tcgen05Wait;
  if (access.view == View::tensor)
    return FindingId::tcgen05Fence;
  const Agent &other = agent(earlier.component);
  View view = earlier.isAsync() ? View::completed : access.view;
  auto isKnownIn = [&](const Clock &clock) {
    const Epoch *known = clock.find(view, earlier.component);
    return known && earlier.time <= std::max(known->all, known->some);
  };
  // Where another lane of either warp is ordered, the rest is convergence; so
  // it is where nobody who is left has seen an atomic that tells of it.
  bool isKnownToSome = earlier.component == access.warp->clock.lanes;
  bool isSeen = false;
  for (const Group &group : access.warp->groups())
    group.clocks.forEachPart(kAllLanes,
                             [&](LaneMask, const Knowledge &knowledge) {
                               isKnownToSome |= isKnownIn(knowledge.clock);
                               for (const Clock &seen : knowledge.seen)
                                 isSeen |= isKnownIn(seen);
                             });
  FindingId id = FindingId::acquireFence;
  if (other.clusterNumber == access.warp->clock.cluster &&
      access.warp->cta().cluster().size() > 1)
    id = FindingId::mbarrierRemoteScope;
  else if (!isSeen)
    id = FindingId::warpConvergence;
  if (isKnownToGone(access, earlier))
    id = FindingId::exitAsArrival;
  if (isKnownToSome)
    id = FindingId::warpConvergence;
  if (isKnownIn(access.warp->cta().relaxedMeetings.clock))
    id = FindingId::clusterBarrierRelaxed;
  bool isReadBeforeAsyncWrite =
      access.view != View::generic && !earlier.isAsync() &&
      !earlier.isWrite() &&
      isOrderedStrictly(access, earlier, overlap, View::generic);
  if (isReadBeforeAsyncWrite)
    id = FindingId::proxyFenceAfterRead;
  if (isCopyBeforeProduct(access, earlier) &&
      isOrderedStrictly(access, earlier, overlap, View::generic))
    id = FindingId::proxyFenceAfterCpAsync;
  if (isSameValue(access, earlier) &&
      !isOrderedDeFacto(access, earlier, overlap, view))
    id = FindingId::sameValue;
  if (isFirstOfSwap(access, earlier))
    id = FindingId::casFirstRead;
  if (!isOrderedDeFacto(access, earlier, overlap, view) &&
      isFlaggedAfterRead(access, earlier, overlap))
    id = FindingId::relaxedAfterRead;
  return id;
}

FindingId RaceDetector::errorOf(const Access &access, const Record &earlier,
                                std::uint16_t overlap) const {
  FindingId id = FindingId::race;
  bool isFenceAll = access.view != View::generic && !earlier.isAsync() &&
                    isOrderedDeFacto(access, earlier, overlap, View::generic);
  Agent::Kind kind = agent(earlier.component).kind;
  bool isTensor = kind >= Agent::Kind::tensorOperations;
  if (isFenceAll)
    id = FindingId::proxyFence;
  else if (kind == Agent::Kind::tensorOperations && !earlier.isWrite() &&
           access.view != View::tensor && !access.verb)
    id = FindingId::tcgen05OperandReuse;
  else if (isTensor)
    id = FindingId::tcgen05NotAwaited;
  else if (kind == Agent::Kind::products)
    id = FindingId::wgmmaOperandReuse;
  else if (kind != Agent::Kind::lanes && earlier.isWrite())
    id = FindingId::copyNotAwaited;
  else if (kind != Agent::Kind::lanes)
    id = FindingId::copySourceReuse;
  else if (earlier.isStrong() && access.record.isStrong())
    id = FindingId::scope;
  return id;
}

/// The .relaxed wait by which this warp has seen the phase of a copy; null:
/// none.
const Op *RaceDetector::relaxedWaitFor(const Access &access,
                                       const Record &earlier) const {
  const Agent &other = agent(earlier.component);
  const Cta &cta = access.warp->cta();
  auto barrier = cta.mbarrierHistory.find(other.number);
  if (other.ctaNumber != access.warp->clock.cta ||
      barrier == cta.mbarrierHistory.end())
    return nullptr;
  auto seen = barrier->second.seen.find(access.warp->clock.lanes);
  bool hasSeen =
      seen != barrier->second.seen.end() && seen->second >= earlier.time;
  return hasSeen ? barrier->second.relaxedWait : nullptr;
}

/// Whether a store writes what comes of a load that `isIt`: from the
/// instructions before it, as they stand in the program.
template <typename IsIt>
static bool isFedBy(const std::vector<Op> &ops, const Op &store, IsIt &&isIt) {
  std::set<std::uint32_t> wanted;
  auto want = [&](const Reg &reg) {
    if (reg.isValid())
      wanted.insert(reg.index);
  };
  auto isWanted = [&](const Reg &reg) {
    return reg.isValid() && wanted.contains(reg.index);
  };
  for (const Reg &reg : store.list)
    want(reg);
  for (const Op *op = &store; op-- != ops.data();) {
    bool isSource = isWanted(op->dst) || isWanted(op->dst2) ||
                    (op->isListWritten &&
                     std::any_of(op->list.begin(), op->list.end(), isWanted));
    if (!isSource)
      continue;
    if (op->effect->kind == EffectKind::load && isIt(*op))
      return true;
    if (!op->row->isArithmetic())
      continue;
    for (const Reg &reg : op->src)
      want(reg);
  }
  return false;
}

/// A place that many read and write: a counter, a bin, a sum. By one line of
/// the source, or through one address.
bool RaceDetector::isUpdate(const Op &one, const Op &two) const {
  auto isOneLine = [&](const Op &a, const Op &b) {
    SourceLine here = machine_.findings().sourceLine(*a.origin);
    SourceLine there = machine_.findings().sourceLine(*b.origin);
    return here.line == there.line && here.file == there.file;
  };
  auto isPair = [&](const Op &load, const Op &store) {
    bool isOneAddress =
        load.effect->address.index == store.effect->address.index &&
        load.effect->offset == store.effect->offset;
    return isOneAddress || isOneLine(load, store);
  };
  auto isA = [](const Op &op, EffectKind kind) {
    return op.effect->kind == kind;
  };
  if (isA(one, EffectKind::store) && isA(two, EffectKind::store))
    return isFedBy(machine_.code().ops, one,
                   [&](const Op &load) { return isPair(load, one); });
  bool isLoadAndStore =
      (isA(one, EffectKind::load) && isA(two, EffectKind::store)) ||
      (isA(one, EffectKind::store) && isA(two, EffectKind::load));
  return isLoadAndStore && isPair(one, two);
}

std::string RaceDetector::missingEdge(FindingId id, const Access &access,
                                      const Record &earlier) const {
  const Agent &other = agent(earlier.component);
  const WarpClock &mine = access.warp->clock;
  bool isSameCta = other.ctaNumber == mine.cta;
  std::string thread = fmt::format(
      "thread {}",
      other.number * kLanes +
          (earlier.lanes ? static_cast<unsigned>(firstLane(earlier.lanes))
                         : 0u));
  if (id == FindingId::proxyFence || id == FindingId::proxyFenceAfterRead ||
      id == FindingId::proxyFenceAfterCpAsync)
    return "fence.proxy.async between them";
  if (id == FindingId::tcgen05Fence)
    return other.kind == Agent::Kind::tensorOperations
               ? "tcgen05.fence::after_thread_sync behind the wait"
               : "tcgen05.fence::before_thread_sync before the hand-over and "
                 "tcgen05.fence::after_thread_sync behind it";
  if (id == FindingId::warpConvergence)
    return "bar.warp.sync (__syncwarp) of the lanes; only their running "
           "together orders them";
  if (id == FindingId::mbarrierRemoteScope)
    return ".release.cluster at the mbarrier.arrive and .acquire.cluster at "
           "the wait; by default both reach their own CTA only";
  if (id == FindingId::clusterBarrierRelaxed)
    return ".release at the barrier.cluster.arrive (leave .relaxed out), or a "
           "barrier of the CTA (bar.sync)";
  if (id == FindingId::casFirstRead)
    return "ld.relaxed (or volatile) for the value that the loop of atom.cas "
           "tries first";
  if (id == FindingId::relaxedAfterRead)
    return ".release at the flag that is set behind the read, and .acquire "
           "where it is waited for";
  if (id == FindingId::acquireFence)
    return "a fence after the atomic that was read and before this "
           "(fence.acq_rel.gpu, __threadfence)";
  if (id == FindingId::exitAsArrival)
    return "an arrival of the thread before it leaves (bar.sync, or bar.arrive "
           "with a count); only its exit lets the barrier go";
  if (id == FindingId::memoryFence)
    return "a fence (fence.acq_rel, __threadfence) between the data and the "
           "flag, on the side of the writer and of the reader";
  if (id == FindingId::sameValue)
    return "a barrier between them, or one thread that writes for all";
  if (id == FindingId::scope)
    return "a scope on both that takes in the other's thread";
  switch (other.kind) {
  case Agent::Kind::products:
    if (isAwaited(access, earlier))
      return fmt::format("a barrier or an arrival between warpgroup {}, which "
                         "has waited for the wgmma, and this thread",
                         other.number);
    return fmt::format("wgmma.wait_group by warpgroup {}, before it hands the "
                       "memory on",
                       other.number);
  case Agent::Kind::mbarrier:
    if (const Op *wait = relaxedWaitFor(access, earlier))
      return fmt::format(
          "the wait for phase {} at {} is .relaxed, which orders "
          "nothing: .acquire there, or a fence "
          "(fence.acq_rel.cta) behind it",
          earlier.time - 1, machine_.findings().placeOf(*wait));
    return fmt::format("a wait for phase {} of the mbarrier at {}",
                       earlier.time - 1,
                       machine_.findings().describeShared(other.number));
  case Agent::Kind::copies:
    return fmt::format("cp.async.wait_group by {} and a barrier behind it",
                       thread);
  case Agent::Kind::bulkReads:
    return fmt::format(
        "cp.async.bulk.wait_group.read by {} and a barrier behind it", thread);
  case Agent::Kind::bulkWrites:
    return fmt::format("cp.async.bulk.wait_group by {}", thread);
  case Agent::Kind::tensorOperations:
    return fmt::format("tcgen05.commit by {}, which issued it, and a wait for "
                       "the mbarrier that this arrives at",
                       thread);
  case Agent::Kind::tensorLoads:
    return fmt::format("tcgen05.wait::ld by warp {} and, in other warps, a "
                       "barrier behind it",
                       other.number);
  case Agent::Kind::tensorStores:
    return fmt::format("tcgen05.wait::st by warp {} and, in other warps, a "
                       "barrier behind it",
                       other.number);
  case Agent::Kind::lanes:
    break;
  }
  if (isSameCta && other.number == static_cast<unsigned>(access.warp->index()))
    return "bar.warp.sync (__syncwarp) of the lanes, which run apart here";
  std::string atomic =
      isUpdate(*access.op, machine_.code().ops[earlier.op])
          ? "an atomic (atom or red) that reads, adds and writes at once; "
            "else "
      : access.record.isWrite() && earlier.isWrite()
          ? "one thread that stores for both; else "
          : "";
  if (isSameCta)
    return atomic + "a barrier of the CTA (bar.sync), or an arrival and a wait "
                    "at an mbarrier";
  if (other.clusterNumber == mine.cluster)
    return atomic +
           "a cluster barrier, or release and acquire at .cluster scope";
  return atomic + "release and acquire at .gpu scope (a fence and an atomic on "
                  "each side); CTAs run in any order";
}

bool RaceDetector::isAwaited(const Access &access,
                             const Record &earlier) const {
  const Agent &other = agent(earlier.component);
  constexpr std::size_t kWarpsPerGroup = 4;
  const auto &warps = access.warp->cta().warps();
  if (other.ctaNumber != access.warp->clock.cta)
    return false;
  for (std::size_t i = other.number * kWarpsPerGroup;
       i < std::min(warps.size(), (other.number + 1) * kWarpsPerGroup); ++i)
    for (const Group &group : warps[i]->groups()) {
      const Epoch *known =
          group.clocks.deFacto().clock.find(View::completed, earlier.component);
      if (known && known->covers(earlier.time, earlier.lanes))
        return true;
    }
  return false;
}

std::string RaceDetector::actorOf(const Record &record) const {
  const Agent &who = agent(record.component);
  std::string actor;
  int lane = record.lanes ? firstLane(record.lanes) : 0;
  switch (who.kind) {
  case Agent::Kind::products:
    actor = fmt::format("a wgmma of warpgroup {}", who.number);
    break;
  case Agent::Kind::mbarrier:
    actor = fmt::format("a copy that counts on the mbarrier at {}",
                        machine_.findings().describeShared(who.number));
    break;
  case Agent::Kind::copies:
    actor = fmt::format("a cp.async of thread {}", who.number * kLanes + lane);
    break;
  case Agent::Kind::bulkReads:
  case Agent::Kind::bulkWrites:
    actor = fmt::format("a bulk copy of thread {}", who.number * kLanes + lane);
    break;
  case Agent::Kind::tensorOperations:
    actor = fmt::format("{} of thread {}",
                        machine_.code().ops[record.op].origin->fullOpcode(),
                        who.number * kLanes + lane);
    break;
  case Agent::Kind::tensorLoads:
  case Agent::Kind::tensorStores:
    actor = fmt::format("a tcgen05.{} of warp {}",
                        who.kind == Agent::Kind::tensorLoads ? "ld" : "st",
                        who.number);
    break;
  case Agent::Kind::lanes:
    actor = fmt::format("thread {}", who.number * kLanes + lane);
    if (countLanes(record.lanes) > 1)
      actor +=
          fmt::format(" and {} more of its warp", countLanes(record.lanes) - 1);
  }
  return fmt::format("{} of CTA ({}, {}, {})", actor, who.cta[0], who.cta[1],
                     who.cta[2]);
}

/// The unit whose accesses a component is, as a timeline has it.
static const char *unitOf(const Agent &agent) {
  switch (agent.kind) {
  case Agent::Kind::copies:
    return "cp.async";
  case Agent::Kind::mbarrier:
  case Agent::Kind::bulkReads:
  case Agent::Kind::bulkWrites:
    return "tma";
  case Agent::Kind::products:
    return "wgmma";
  case Agent::Kind::tensorOperations:
    return "tcgen05";
  case Agent::Kind::tensorLoads:
  case Agent::Kind::tensorStores:
  case Agent::Kind::lanes:
    break;
  }
  return "warp";
}

/// Of the warp or the warpgroup.
static int numberOf(const Agent &agent) {
  return agent.kind == Agent::Kind::mbarrier ? 0
                                             : static_cast<int>(agent.number);
}

std::string RaceDetector::describe(const Record &record) const {
  SourceLine line =
      machine_.findings().sourceLine(*machine_.code().ops[record.op].origin);
  return fmt::format("{} at {}:{}", actorOf(record), line.file, line.line);
}

void RaceDetector::reportOverBarrier(const Access &access,
                                     const ShadowedMemory &memory,
                                     std::uint64_t cell, std::uint16_t bytes) {
  for (unsigned half : {0u, 1u}) {
    bool isHit =
        (memory.barriers[cell] >> half & 1) && (bytes >> (8 * half) & 0xff);
    auto address = static_cast<std::uint32_t>(
        kFirstSharedAddress + cell * Shadow::kCellBytes + 8 * half);
    auto barrier = memory.owner->mbarrierHistory.find(address);
    FindingId id = FindingId::dataOverBarrier;
    if (!isHit || barrier == memory.owner->mbarrierHistory.end() ||
        isTold(id, access, barrier->second.init))
      continue;
    tell(id, access, barrier->second.init,
         fmt::format("this writes over the live mbarrier at {}, which {} "
                     "initialises; missing: mbarrier.inval between them",
                     machine_.findings().describeShared(address),
                     describe(barrier->second.init)),
         sharedObject(address));
  }
}

int RaceDetector::issuerOfSame(const Access &access,
                               const Record &earlier) const {
  const Agent &other = agent(earlier.component);
  const Warp &warp = *access.warp;
  const Effect &effect = *access.op->effect;
  bool isSame = access.record.isWrite() && earlier.isWrite() &&
                access.record.op == earlier.op &&
                other.ctaNumber == warp.clock.cta && effect.address.isValid();
  if (!isSame)
    return -1;
  // From or to the same shared memory, as far as the register still says.
  int lane = firstLane(access.issuers);
  auto isAnother = [&](const Warp &issuer, int issuing) {
    return (&issuer != &warp || issuing != lane) &&
           issuer.read(effect.address, issuing) ==
               warp.read(effect.address, lane);
  };
  const auto &warps = warp.cta().warps();
  if (other.kind == Agent::Kind::bulkWrites) {
    const Warp &issuer = *warps[other.number];
    int issuing = firstLane(earlier.lanes);
    return isAnother(issuer, issuing) ? issuer.thread(issuing) : -1;
  }
  auto barrier = warp.cta().mbarrierHistory.find(other.number);
  if (other.kind != Agent::Kind::mbarrier ||
      barrier == warp.cta().mbarrierHistory.end() ||
      earlier.component != access.record.component ||
      earlier.time != access.record.time)
    return -1;
  for (const OnMbarrier &copy : barrier->second.copies)
    if (copy.record.op == earlier.op && copy.phase == earlier.time &&
        &copy.warp->cta() == &warp.cta() && isAnother(*copy.warp, copy.lane))
      return copy.warp->thread(copy.lane);
  return -1;
}

void RaceDetector::reportRepeated(FindingId id, const Access &access,
                                  const Record &earlier, int other,
                                  const std::string &place,
                                  const FindingObject &object) {
  bool isNew = !isTold(id, access, earlier);
  if (isNew)
    tell(id, access, earlier,
         fmt::format("2 threads issue this copy to the same bytes, {}; "
                     "nothing orders them; missing: one thread that issues it "
                     "for all (elect.sync, or threadIdx.x == 0)",
                     place),
         object);
  auto known =
      told_.known.find({id, placesOf(machine_, access.record.op, earlier.op)});
  if (known == told_.known.end())
    return; // it is allowed
  RaceFinding &found = told_.findings[known->second];
  bool isAnother = !isNew && found.issuers.empty();
  if (isAnother || found.finding.cta != access.warp->cta().index())
    return;
  // Lanes that issue it together; of bulk stores only the first one is compared
  // with those of other warps.
  const Warp &warp = *access.warp;
  int mine = firstLane(access.issuers);
  LaneMask together = access.warp->group().lanes;
  if (access.op->guard.isValid())
    together &= warp.pred(access.op->guard);
  Reg address = access.op->effect->address;
  if (found.issuers.insert(warp.thread(mine)).second)
    forEachLane(together, [&](int lane) {
      if (warp.read(address, lane) == warp.read(address, mine))
        found.issuers.insert(warp.thread(lane));
    });
  found.issuers.insert(other);
  std::string &message = found.finding.message;
  message.replace(0, message.find(' '), fmt::to_string(found.issuers.size()));
}

void RaceDetector::report(const Access &access, const Record &earlier,
                          std::uint16_t overlap, const ShadowedMemory &memory,
                          std::uint64_t cell, Verdict verdict) {
  bool isError = verdict >= Verdict::unordered;
  FindingId id = isError ? errorOf(access, earlier, overlap)
                         : ruleOf(access, earlier, overlap);
  if (verdict == Verdict::announced)
    id = FindingId::memoryFence;
  int issuer = isError ? issuerOfSame(access, earlier) : -1;
  if (issuer < 0 && isTold(id, access, earlier))
    return;
  std::uint64_t first = cell * Shadow::kCellBytes +
                        static_cast<unsigned>(std::countr_zero(overlap));
  auto shared = static_cast<std::uint32_t>(first) + kFirstSharedAddress;
  std::string place = machine_.findings().describeShared(shared);
  FindingObject object = sharedObject(shared);
  if (!memory.owner) {
    place = fmt::format("global address {:#x} ({})", first,
                        machine_.memory().describe(first));
    Region *region = machine_.memory().find(first);
    object = {"global", first, region ? region->name : std::string()};
  }
  if (memory.isTensor) {
    auto column =
        static_cast<std::uint32_t>(first / TensorMemory::kColumnBytes);
    auto row = static_cast<std::uint32_t>(first % TensorMemory::kColumnBytes);
    place = fmt::format("lane {}, column {} of tensor memory", row / 4, column);
    object = {"tensor", TensorAddress{row / 4, column}.bits()};
  }
  if (memory.owner && memory.owner != &access.warp->cta())
    place +=
        fmt::format(" of CTA {} of the cluster", memory.owner->rankInCluster());
  if (issuer >= 0)
    return reportRepeated(id, access, earlier, issuer, place, object);
  const char *who = "only released hardware, not the PTX text, orders the two";
  if (verdict == Verdict::announced)
    who = "only the value of a flag orders the two";
  else if (isError)
    who = "nothing orders the two";
  else if (id == FindingId::sameValue)
    who = "nothing orders the two, which write the same value";
  tell(id, access, earlier,
       fmt::format("this {} {}, which {} {}; {}; missing: {}",
                   access.verb               ? access.verb
                   : access.record.isWrite() ? "writes"
                                             : "reads",
                   place, describe(earlier),
                   earlier.isWrite() ? "writes" : "reads", who,
                   missingEdge(id, access, earlier)),
       object);
  Finding &told = told_.findings.back().finding;
  told.missing = missingEdge(id, access, earlier);
  told.bytes = static_cast<std::uint32_t>(std::popcount(overlap));
}

PlacePair placesOf(const Machine &machine, std::uint32_t op,
                   std::uint32_t earlier) {
  auto place = [&](std::uint32_t index) {
    const ptx::Instruction &origin = *machine.code().ops[index].origin;
    // Without .loc the line of the PTX, which no file has.
    if (origin.source.line <= 0)
      return std::uint64_t(origin.line);
    return (std::uint64_t(origin.source.file) + 1) << 32 |
           std::uint32_t(origin.source.line);
  };
  return {place(op), place(earlier)};
}

bool ToldRaces::isTold(const Machine &machine, FindingId id, PlacePair places,
                       std::uint64_t count) {
  auto [found, isNew] = known.try_emplace({id, places}, findings.size());
  if (!isNew) {
    findings[found->second].count += count;
    return true;
  }
  if (quota.admit(machine.findings().gradeOf(id), id, places.first,
                  places.second))
    return false;
  known.erase(found);
  return true;
}

bool RaceDetector::isTold(FindingId id, const Access &access,
                          const Record &earlier) {
  if (machine_.findings().isAllowed(id))
    return true;
  auto op = static_cast<std::uint32_t>(access.op - machine_.code().ops.data());
  PlacePair places = placesOf(machine_, op, earlier.op);
  return told_.isTold(machine_, id, places);
}

void RaceDetector::tell(FindingId id, const Access &access,
                        const Record &earlier, const std::string &message,
                        const FindingObject &object) {
  const Warp &warp = *access.warp;
  told_.findings.push_back(
      {id,
       machine_.findings().make(id, warp.cta().index(),
                                warp.thread(firstLane(access.issuers)),
                                access.issuers, *access.op, message, object),
       placesOf(
           machine_,
           static_cast<std::uint32_t>(access.op - machine_.code().ops.data()),
           earlier.op)});
  const ptx::Instruction &origin = *machine_.code().ops[earlier.op].origin;
  if (&origin != access.op->origin || earlier.bytes)
    told_.findings.back().finding.other = Finding::Other{
        actorOf(earlier), machine_.findings().sourceLine(origin), origin.line,
        earlier.isWrite(), machine_.findings().stackOf(origin),
        agent(earlier.component).cta, unitOf(agent(earlier.component)),
        numberOf(agent(earlier.component))};
}

FindingObject RaceDetector::sharedObject(std::uint32_t address) const {
  return {"shared", address, machine_.findings().sharedName(address)};
}

} // namespace kiln::sim
