// Recorder: clocks, and when each thing happens that a warp can wait for.
#include "sim/report/Recorder.h"
#include "sim/program/Effect.h"
#include "sim/units/matrix/Tcgen05Descriptor.h"
#include "sim/units/memory/Access.h"
#include "support/Error.h"

#include <algorithm>
#include <utility>

namespace kiln::sim {

/// Bytes that the copy engine moves in one unit of time.
static constexpr std::uint64_t kBytesPerUnit = 32;
/// Columns that a tensor core multiplies in one unit of time.
static constexpr std::uint64_t kColumnsPerUnit = 2;
/// Accesses of global memory that are no further apart are drawn as one.
static constexpr std::uint64_t kGap = 64;

static constexpr int kWarpsPerGroup = 4;

/// The CTA and the plain address that an operand means.
static std::pair<Cta *, std::uint32_t> sharedAt(Warp &warp, Reg reg,
                                                std::int64_t offset, int lane) {
  std::uint64_t address =
      warp.read(reg, lane) + static_cast<std::uint64_t>(offset);
  if (address >> kWindowShift == kSharedWindow >> kWindowShift)
    address -= kSharedWindow;
  std::uint32_t plain;
  Cta *cta = sharedOwner(warp.cta(), address, plain);
  return {cta ? cta : &warp.cta(), plain};
}

Recorder::Time Recorder::now(const Warp &warp) {
  return static_cast<Time>(static_cast<std::int64_t>(warp.instructions) +
                           clocks_[&warp].skew);
}

Recorder::Time Recorder::phaseTime(const Cta &cta, std::uint32_t address,
                                   std::uint32_t phase) const {
  auto barrier = barriers_.find({&cta, address});
  if (barrier == barriers_.end())
    return 0;
  auto found = barrier->second.phases.find(phase);
  return found == barrier->second.phases.end() ? 0 : found->second;
}

Recorder::Drawn &Recorder::draw(const Warp &warp, const Op &op,
                                Timeline::Row row, Timeline::Kind kind,
                                Time start, Time end) {
  Timeline::Event event;
  event.cta = warp.cta().index();
  event.row = row;
  event.kind = kind;
  event.start = start;
  event.end = end;
  event.ptx_line = op.origin->line;
  SourceLine source = warp.cta().machine().findings().sourceLine(*op.origin);
  if (source.file != "PTX") {
    event.file = source.file;
    event.line = static_cast<int>(source.line);
  }
  Drawn &drawn = drawn_.emplace_back(Drawn{std::move(event), &warp.cta()});
  drawn.op = &op;
  return drawn;
}

static Timeline::Row rowOf(const Warp &warp) {
  return {Timeline::Agent::warp, warp.index()};
}

void Recorder::waitUntil(Warp &warp, const Op &op, Timeline::Awaited awaited,
                         Time time, std::uint32_t barrier) {
  Time start = now(warp);
  if (time <= start)
    return;
  Drawn &drawn = draw(warp, op, rowOf(warp), Timeline::Kind::wait, start, time);
  drawn.event.awaited = awaited;
  drawn.barrier = barrier;
  clocks_[&warp].skew += static_cast<std::int64_t>(time - start);
}

void Recorder::take(const AsyncAccess &event) {
  bool isLoad =
      event.isWrite && event.owner && event.over.by == Completion::By::mbarrier;
  if (isLoad)
    return beginLoad(event);
  if (!event.isWrite && event.over.by == Completion::By::bulkGroupRead)
    beginStore(event);
}

static std::uint64_t bytesOf(const AsyncAccess &event) {
  std::uint64_t bytes = 0;
  for (const ByteRun &run : event.runs)
    bytes += run.bytes;
  return bytes;
}

Recorder::Time Recorder::useCopyEngine(Warp &warp, std::uint64_t bytes,
                                       Time &start) {
  Time &free = copyEngine_[&warp.cta()];
  start = std::max(now(warp), free);
  return free = start + std::max<Time>(1, bytes / kBytesPerUnit);
}

void Recorder::beginStore(const AsyncAccess &event) {
  Time start = 0;
  Time end = useCopyEngine(event.warp, bytesOf(event), start);
  draw(event.warp, event.op, {Timeline::Agent::tma}, Timeline::Kind::store,
       start, end);
  forEachLane(event.issuers, [&](int lane) {
    Groups &groups = groups_[{&event.warp, lane, true}];
    groups.open = std::max(groups.open, end);
  });
}

/// A multicast brings the same to several CTAs of the cluster, at one time.
void Recorder::beginLoad(const AsyncAccess &event) {
  Warp &warp = event.warp;
  int lane = firstLane(event.issuers);
  bool isFirst = lastLoad_.warp != &warp ||
                 lastLoad_.instruction != warp.instructions ||
                 lastLoad_.lane != lane;
  std::uint64_t bytes = bytesOf(event);
  if (isFirst) {
    Time start = 0;
    Time end = useCopyEngine(warp, bytes, start);
    lastLoad_ = {&warp, warp.instructions, lane, drawn_.size(), end};
    draw(warp, event.op, {Timeline::Agent::tma}, Timeline::Kind::load, start,
         end);
    clocks_[&warp].hasCopies = true;
  }
  const Cta *cta = event.over.cta;
  std::uint32_t address = event.over.object;
  Barrier &barrier = barriers_[{cta, address}];
  auto found = cta->mbarriers.find(address);
  bool isThere = found != cta->mbarriers.end();
  // Of several, the one of the CTA that issued it.
  if (isFirst || cta == &warp.cta()) {
    Drawn &drawn = drawn_[lastLoad_.drawn];
    drawn.barrier = address;
    drawn.cta = cta;
    drawn.phase = isThere ? found->second.phase : 0;
    drawn.life = barrier.life;
  }
  auto destination = static_cast<std::uint32_t>(event.runs.front().begin) +
                     kFirstSharedAddress;
  tiles_[{event.owner, destination}] = {
      destination + static_cast<std::uint32_t>(bytes), address};
  if (!isThere)
    return;
  barrier.hasCopies = true;
  Time &done = barrier.phases[found->second.phase];
  done = std::max(done, lastLoad_.done);
}

/// Copies of the threads' own, which go through the caches and not by TMA.
void Recorder::beginAsyncCopies(Warp &warp, const Op &op, LaneMask active) {
  const Cta *cta = &warp.cta();
  auto bytes = static_cast<std::uint64_t>(op.effect->count) *
               static_cast<std::uint64_t>(countLanes(active));
  auto last = asyncCopies_.find(cta);
  Time start = now(warp);
  if (last != asyncCopies_.end())
    start = std::max(start, drawn_[last->second].event.end);
  Time end = start + std::max<Time>(1, bytes / kBytesPerUnit);
  if (last != asyncCopies_.end() && drawn_[last->second].event.end == start &&
      drawn_[last->second].event.ptx_line == op.origin->line) {
    drawn_[last->second].event.end = end;
  } else {
    asyncCopies_[cta] = drawn_.size();
    draw(warp, op, {Timeline::Agent::cp_async}, Timeline::Kind::load, start,
         end);
  }
  forEachLane(active, [&](int lane) {
    Groups &groups = groups_[{&warp, lane, false}];
    groups.open = std::max(groups.open, end);
  });
}

void Recorder::commitCopies(Warp &warp, const Op &op, LaneMask active) {
  forEachLane(active, [&](int lane) {
    Groups &groups = groups_[{&warp, lane, op.origin->has("bulk")}];
    groups.committed.push_back(std::exchange(groups.open, 0));
  });
}

std::uint32_t Recorder::barrierOfTile(Warp &warp, Reg descriptor,
                                      int lane) const {
  if (!descriptor.isValid())
    return 0;
  const Cta *cta = &warp.cta();
  auto address =
      static_cast<std::uint32_t>((warp.read(descriptor, lane) & 0x3fff) << 4);
  auto tile = tiles_.upper_bound({cta, address});
  if (tile == tiles_.begin())
    return 0;
  --tile;
  bool isInside = tile->first.first == cta && address < tile->second.first;
  return isInside ? tile->second.second : 0;
}

void Recorder::beginProduct(Warp &warp, const Op &op, LaneMask active) {
  const Cta *cta = &warp.cta();
  int group = warp.index() / kWarpsPerGroup;
  Product &product = products_[{cta, group, warp.wgmma.issued}];
  product.issued = std::max(product.issued, now(warp));
  if (++product.warps < kWarpsPerGroup)
    return;
  Time &free = tensorCore_[{cta, group}];
  Time start = std::max(product.issued, free);
  free = product.done =
      start + static_cast<Time>(op.effect->count) / kColumnsPerUnit;
  Drawn &drawn = draw(warp, op, {Timeline::Agent::wgmma, group},
                      Timeline::Kind::mma, start, free);
  for (Reg descriptor : {op.effect->address, op.effect->operand})
    if (std::uint32_t barrier =
            barrierOfTile(warp, descriptor, firstLane(active)))
      drawn.barrier = barrier;
}

/// One tensor core of the CTA, or of both CTAs of a pair.
void Recorder::beginTensorProduct(Warp &warp, const Op &op, int lane) {
  constexpr int kTensorMemory = -1;
  const Effect &effect = *op.effect;
  std::vector<const Cta *> ctas = {&warp.cta()};
  if (const Cta *peer = effect.count == 2 ? warp.cta().peer() : nullptr)
    ctas.push_back(peer);
  Time start = now(warp);
  for (const Cta *cta : ctas)
    start = std::max(start, tensorCore_[{cta, kTensorMemory}]);
  int columns =
      columnsOf(static_cast<std::uint32_t>(warp.read(effect.shape, lane)));
  Time end = start + static_cast<Time>(columns) / kColumnsPerUnit;
  tensorProducts_[{&warp, lane}] = end;
  for (const Cta *cta : ctas) {
    tensorCore_[{cta, kTensorMemory}] = end;
    Drawn &drawn = draw(warp, op, {Timeline::Agent::tcgen05},
                        Timeline::Kind::mma, start, end);
    drawn.event.cta = cta->index();
    for (Reg descriptor : {effect.address, effect.operand})
      if (std::uint32_t barrier = barrierOfTile(warp, descriptor, lane))
        drawn.barrier = barrier;
  }
}

/// At an mbarrier, or by tcgen05.commit at those of several CTAs.
void Recorder::arrive(Warp &warp, const Op &op, int lane) {
  const Effect &effect = *op.effect;
  auto [owner, address] = sharedAt(warp, effect.address, effect.offset, lane);
  Time time = now(warp);
  if (effect.isCommit)
    time = std::max(time, tensorProducts_[{&warp, lane}]);
  std::uint64_t mask = effect.mask.isValid()
                           ? warp.read(effect.mask, lane)
                           : std::uint64_t(1) << owner->rankInCluster();
  Cluster &cluster = owner->cluster();
  for (std::size_t rank = 0; rank < cluster.size(); ++rank) {
    Cta &cta = cluster.cta(static_cast<int>(rank));
    auto found = cta.mbarriers.find(address);
    if (!(mask >> rank & 1) || found == cta.mbarriers.end())
      continue;
    Time &done = barriers_[{&cta, address}].phases[found->second.phase];
    done = std::max(done, time);
  }
}

void Recorder::before(Warp &warp, const Op &op, LaneMask active) {
  const Effect &effect = *op.effect;
  const Cta *cta = &warp.cta();
  auto reach = [&](int barrier, std::uint32_t round) {
    Time &time = rounds_[{barrier < 0 ? nullptr : cta, barrier, round}];
    time = std::max(time, now(warp));
  };
  switch (effect.kind) {
  case EffectKind::barrierArrive:
    forEachLane(active, [&](int lane) { arrive(warp, op, lane); });
    return;
  case EffectKind::barrierInit:
    forEachLane(active, [&](int lane) {
      auto [owner, address] =
          sharedAt(warp, effect.address, effect.offset, lane);
      ++barriers_[{owner, address}].life;
    });
    return;
  case EffectKind::copyIn:
    if (!effect.barrier.isValid())
      beginAsyncCopies(warp, op, active);
    return;
  case EffectKind::copyCommit:
    return commitCopies(warp, op, active);
  case EffectKind::product:
    return beginProduct(warp, op, active);
  case EffectKind::tensorProduct:
    forEachLane(active, [&](int lane) { beginTensorProduct(warp, op, lane); });
    return;
  case EffectKind::productWait: {
    const auto &groups = warp.wgmma.groups;
    auto keep = static_cast<std::size_t>(effect.count);
    awaited_ = groups.size() > keep ? groups[groups.size() - keep - 1] : 0;
    return;
  }
  case EffectKind::ctaBarrier:
    if (warp.group().wait.kind != WaitReason::Kind::ctaBarrier) {
      auto id = warp.read(effect.operand, firstLane(active)) % 16;
      reach(static_cast<int>(id), cta->barriers[id].generation);
      awaited_ = cta->barriers[id].generation;
    } else {
      awaited_ = warp.group().wait.detail;
    }
    return;
  case EffectKind::clusterArrive:
    return reach(-1, cta->cluster().barrierGeneration);
  default:
    return;
  }
}

void Recorder::endBarrierWait(Warp &warp, const Op &op, LaneMask active) {
  LaneMask passed = warp.pred(op.pdst) & active;
  if (!passed)
    return;
  auto [owner, address] =
      sharedAt(warp, op.effect->address, op.effect->offset, firstLane(passed));
  auto found = owner->mbarriers.find(address);
  if (found == owner->mbarriers.end() || found->second.phase == 0)
    return;
  Barrier &barrier = barriers_[{owner, address}];
  auto phase = barrier.phases.find(found->second.phase - 1);
  if (phase != barrier.phases.end())
    waitUntil(warp, op, Timeline::Awaited::mbarrier, phase->second, address);
}

void Recorder::endCopyWait(Warp &warp, const Op &op, LaneMask active) {
  Time time = 0;
  auto keep = static_cast<std::size_t>(op.effect->count);
  if (op.origin->has("wait_all"))
    commitCopies(warp, op, active);
  bool isBulk = op.origin->has("bulk");
  forEachLane(active, [&](int lane) {
    std::deque<Time> &committed = groups_[{&warp, lane, isBulk}].committed;
    for (; committed.size() > keep; committed.pop_front())
      time = std::max(time, committed.front());
  });
  waitUntil(warp, op, Timeline::Awaited::copies, time);
}

/// Loads and stores of global memory by the threads themselves.
void Recorder::noteAccess(Warp &warp, const Op &op) {
  const Effect &effect = *op.effect;
  if (effect.space != Space::global && effect.space != Space::generic)
    return;
  bool isLoad = effect.kind == EffectKind::load;
  Timeline::Kind kind = isLoad ? Timeline::Kind::load : Timeline::Kind::store;
  Time start = now(warp);
  std::size_t &last = clocks_[&warp].lastAccess;
  if (last < drawn_.size() && drawn_[last].event.kind == kind &&
      start <= drawn_[last].event.end + kGap) {
    drawn_[last].event.end = start + 1;
    return;
  }
  last = drawn_.size();
  draw(warp, op, rowOf(warp), kind, start, start + 1);
}

void Recorder::after(Warp &warp, const Op &op, LaneMask active, Step step) {
  if (step == Step::blocked) {
    --clocks_[&warp].skew; // it will be executed again
    return;
  }
  const Effect &effect = *op.effect;
  const Cta *cta = &warp.cta();
  switch (effect.kind) {
  case EffectKind::barrierWait:
    return endBarrierWait(warp, op, active);
  case EffectKind::copyWait:
    return endCopyWait(warp, op, active);
  case EffectKind::productWait:
    if (awaited_)
      waitUntil(
          warp, op, Timeline::Awaited::wgmma,
          products_[{cta, warp.index() / kWarpsPerGroup, awaited_ - 1}].done);
    return;
  case EffectKind::ctaBarrier:
    if (!effect.isArrival)
      waitUntil(warp, op, Timeline::Awaited::cta_barrier,
                rounds_[{cta,
                         static_cast<int>(
                             warp.read(effect.operand, firstLane(active)) % 16),
                         static_cast<std::uint32_t>(awaited_)}]);
    return;
  case EffectKind::clusterWait:
    return waitUntil(
        warp, op, Timeline::Awaited::cluster_barrier,
        rounds_[{nullptr, -1, cta->cluster().barrierGeneration - 1}]);
  case EffectKind::load:
  case EffectKind::store:
  case EffectKind::atomic:
    return noteAccess(warp, op);
  default:
    return;
  }
}

/// Whether the phase that a load belongs to is over.
bool Recorder::isComplete(const Drawn &drawn) const {
  auto barrier = barriers_.find({drawn.cta, drawn.barrier});
  bool isWatched = drawn.event.kind == Timeline::Kind::load && drawn.barrier &&
                   barrier != barriers_.end() &&
                   barrier->second.life == drawn.life;
  if (!isWatched)
    return true;
  auto found = drawn.cta->mbarriers.find(drawn.barrier);
  return found == drawn.cta->mbarriers.end() ||
         found->second.phase > drawn.phase;
}

std::vector<Timeline::Event> Recorder::take() {
  // Slots in the order of the mbarriers that copies signal; those that hand a
  // slot back are the ones that the copying warps wait for.
  std::map<Key, std::pair<int, Timeline::Awaited>> slots;
  for (bool isFull : {true, false}) {
    std::map<const Cta *, int> next;
    for (const auto &[key, barrier] : barriers_) {
      bool isEmpty =
          std::any_of(drawn_.begin(), drawn_.end(), [&](const Drawn &drawn) {
            auto isIssuer = [&](const auto &entry) {
              return entry.second.hasCopies &&
                     &entry.first->cta() == drawn.cta &&
                     rowOf(*entry.first) == drawn.event.row;
            };
            return drawn.event.kind == Timeline::Kind::wait &&
                   Key(drawn.cta, drawn.barrier) == key &&
                   std::any_of(clocks_.begin(), clocks_.end(), isIssuer);
          });
      if (isFull ? barrier.hasCopies : !barrier.hasCopies && isEmpty)
        slots[key] = {next[key.first]++, isFull ? Timeline::Awaited::full
                                                : Timeline::Awaited::empty};
    }
  }
  std::vector<Timeline::Event> events;
  for (Drawn &drawn : drawn_) {
    drawn.event.is_complete = isComplete(drawn);
    if (drawn.barrier && drawn.event.kind != Timeline::Kind::mma)
      drawn.event.object =
          drawn.cta->machine().findings().sharedName(drawn.barrier);
    auto found = slots.find({drawn.cta, drawn.barrier});
    if (found != slots.end()) {
      drawn.event.slot = found->second.first;
      if (drawn.event.kind == Timeline::Kind::wait)
        drawn.event.awaited = found->second.second;
    }
    events.push_back(std::move(drawn.event));
  }
  std::stable_sort(events.begin(), events.end(),
                   [](const Timeline::Event &a, const Timeline::Event &b) {
                     return std::tie(a.cta[2], a.cta[1], a.cta[0], a.start) <
                            std::tie(b.cta[2], b.cta[1], b.cta[0], b.start);
                   });
  return events;
}

} // namespace kiln::sim
