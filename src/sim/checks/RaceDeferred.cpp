// RaceDeferred: accesses that cannot collide with anything yet.
//
// Most buffers of a kernel are only read, and some are only changed by atomics.
// As long as that is so none of their accesses needs a place in the shadow:
// they wait in a log, in the order in which they were made (AccessLog), until
// something else touches the bytes between the first and the last of them
// (AccessExtents). Then they are put where they would have been put at once.
// They have collided with nothing since: nothing of that needs to be judged.
// The same holds of shared memory from one barrier to the next (BarrierEpoch).
#include "sim/checks/RaceDetector.h"
#include "sim/checks/ThreadAccesses.h"
#include "sim/machine/Machine.h"
#include "sim/program/Effect.h"

#include <algorithm>

namespace kiln::sim {

using ExtentKind = AccessExtents::Kind;
/// What waits longer than that goes into the shadow after all.
static constexpr std::size_t kMostGlobalBytes = std::size_t(8) << 20,
                             kMostSharedBytes = std::size_t(1) << 20;

bool RaceDetector::isQuietAtomic(Warp &warp, const Op &op,
                                 const ShadowedMemory &memory) {
  const MemorySemantics &order = op.semantics;
  return order.isAtomic && !order.isAcquire && !order.isRelease &&
         !order.isCounter && !warp.clock.hasStrongStores &&
         memory.locations.empty() && !warp.group().clocks.hasFenced(Scope::cta);
}

void RaceDetector::observeEach(Warp &warp, const Op &op,
                               const AlikeLanes &alike,
                               ShadowedMemory &memory) {
  if (!op.semantics.isReturning || !op.semantics.isHeeded)
    return;
  // Lanes that follow each other at one address are one.
  for (LaneMask left = alike.lanes; left;) {
    int lane = firstLane(left);
    LaneMask those = 0;
    do {
      those |= LaneMask(1) << firstLane(left);
      left &= left - 1;
    } while (left && alike.addresses[firstLane(left)] == alike.addresses[lane]);
    observe(warp, op.semantics, those, memory, alike.addresses[lane]);
  }
}

LoggedAccess RaceDetector::logOf(Warp &warp, const Op &op,
                                 const AlikeLanes &alike) {
  using Form = LoggedAccess::Form;
  Record record = plain(warp, op, alike.isWrite).record;
  return {.flags = record.flags,
          .bytes = static_cast<std::uint8_t>(alike.bytes),
          .form = alike.pattern == Pattern::uniform       ? Form::uniform
                  : alike.pattern == Pattern::consecutive ? Form::consecutive
                                                          : Form::scattered,
          .component = record.component,
          .time = record.time,
          .op = record.op,
          .lanes = alike.lanes,
          .edge = warp.clock.lastEdge,
          .parting = warp.clock.lastParting,
          .cta = warp.clock.cta,
          .base = 0};
}

bool RaceDetector::defer(Warp &warp, const Op &op, const AlikeLanes &alike) {
  if (isByCell)
    return false;
  return alike.owner ? deferShared(warp, op, alike)
                     : deferGlobal(warp, op, alike);
}

bool RaceDetector::deferGlobal(Warp &warp, const Op &op,
                               const AlikeLanes &alike) {
  if (early_)
    return false;
  ExtentKind kind = ExtentKind::direct;
  if (!alike.isWrite && !op.semantics.isStrong)
    kind = ExtentKind::reads;
  else if (alike.isWrite && op.semantics.scope == Scope::gpu &&
           isQuietAtomic(warp, op, global_))
    kind = ExtentKind::atomics;
  auto number = static_cast<std::uint32_t>(&op - warp.code().ops.data());
  auto answer =
      extents_.note(number, kind, {alike.low, alike.high + alike.bytes});
  if (answer == AccessExtents::Answer::touchBehind)
    restoreFallen();
  if (answer != AccessExtents::Answer::defer)
    return false;
  if (kind == ExtentKind::atomics)
    observeEach(warp, op, alike, global_);
  LoggedAccess logged = logOf(warp, op, alike);
  if (!deferred_.add(logged, alike.addresses, alike.low, alike.high))
    ThreadAccesses(*this).restore(logged, op, alike.addresses, nullptr);
  if (deferred_.bytes() > kMostGlobalBytes)
    restoreAll();
  return true;
}

/// Whether barriers order all that threads do to shared memory, or it is a
/// race: no asynchronous unit works for them, and nobody waits for a flag
/// there.
static bool hasPlainShared(const Code &code) {
  return std::all_of(code.ops.begin(), code.ops.end(), [](const Op &op) {
    const Effect &effect = *op.effect;
    switch (effect.kind) {
    case EffectKind::load:
    case EffectKind::store:
      return !effect.isStrong || effect.space == Space::global;
    case EffectKind::ctaBarrier:
      return !effect.isArrival;
    case EffectKind::none:
    case EffectKind::sleep:
    case EffectKind::atomic:
    case EffectKind::warpBarrier:
    case EffectKind::registers:
      return true;
    case EffectKind::other:
      return op.row && op.row->unit == Unit::control;
    default:
      return false;
    }
  });
}

BarrierEpoch *RaceDetector::epochOf(const Cta &cta) {
  if (lastCta_ == &cta)
    return lastEpoch_;
  if (!hasEpochs_)
    hasEpochs_ = !isByCell && hasPlainShared(machine_.code());
  lastCta_ = &cta;
  lastEpoch_ = nullptr;
  if (!*hasEpochs_ || cta.cluster().size() > 1)
    return nullptr;
  const Dim3 &block = machine_.config().block;
  auto [place, isNew] =
      epochs_.try_emplace(&cta, block[0] * block[1] * block[2]);
  return lastEpoch_ = &place->second;
}

void RaceDetector::goDirect(BarrierEpoch &epoch, Cta &cta) {
  ThreadAccesses shadow(*this);
  epoch.goDirect([&](const LoggedAccess &one, const std::uint64_t *addresses) {
    shadow.restore(one, machine_.code().ops[one.op], addresses, &cta);
  });
}

bool RaceDetector::deferShared(Warp &warp, const Op &op,
                               const AlikeLanes &alike) {
  using Kind = BarrierEpoch::Kind;
  Cta &cta = *alike.owner;
  BarrierEpoch *epoch = epochOf(cta);
  if (!epoch || epoch->isDirect())
    return false;
  bool isStrong = op.semantics.isStrong;
  bool isKnown = !isStrong || isQuietAtomic(warp, op, cta.shadow);
  Kind kind = isStrong        ? Kind::atomic
              : alike.isWrite ? Kind::write
                              : Kind::read;
  auto firstOf = [&](Component lanes) { return firstThreadOf(lanes); };
  if (!isKnown ||
      !epoch->add(kind, alike,
                  static_cast<std::uint32_t>(warp.index()) * kLanes, firstOf)) {
    goDirect(*epoch, cta);
    return false;
  }
  if (kind == Kind::atomic)
    observeEach(warp, op, alike, cta.shadow);
  epoch->log().add(logOf(warp, op, alike), alike.addresses, alike.low,
                   alike.high);
  if (epoch->log().bytes() > kMostSharedBytes) {
    ThreadAccesses shadow(*this);
    epoch->empty(
        firstOf, [&](const LoggedAccess &one, const std::uint64_t *addresses) {
          shadow.restore(one, machine_.code().ops[one.op], addresses, &cta);
        });
  }
  return true;
}

void RaceDetector::noteDirect(Cta &owner) {
  BarrierEpoch *epoch = isByCell ? nullptr : epochOf(owner);
  if (epoch && !epoch->isDirect())
    goDirect(*epoch, owner);
}

void RaceDetector::meet(Warp &warp, LaneMask lanes, const CtaBarrier &barrier) {
  Cta &cta = warp.cta();
  auto found = epochs_.find(&cta);
  if (found == epochs_.end() || !found->second.arrive(barrier, lanes))
    return;
  // What does not fit into cells stays where it is when they are forgotten.
  constexpr unsigned kRenewed = 64;
  Shadow &shadow = cta.shadow.cells;
  if (found->second.isInShadow() && ++wipes_ % kRenewed == 0)
    shadow = {};
  else if (found->second.isInShadow())
    shadow.forget(0, cta.shared.size());
  found->second.begin();
}

void RaceDetector::noteDirect(const Op &op, bool isWrite, std::uint64_t begin,
                              std::size_t bytes) {
  if (early_ || isByCell)
    return;
  bool isRead = !isWrite && !op.semantics.isStrong;
  auto number = static_cast<std::uint32_t>(&op - machine_.code().ops.data());
  auto answer = extents_.note(
      number, isRead ? ExtentKind::directReads : ExtentKind::direct,
      {begin, begin + bytes});
  if (answer == AccessExtents::Answer::touchBehind)
    restoreFallen();
}

void RaceDetector::restoreOf(
    const std::function<bool(std::uint32_t)> &isAmong) {
  if (deferred_.isEmpty())
    return;
  ThreadAccesses shadow(*this);
  deferred_.take([&](const LoggedAccess &one) { return isAmong(one.op); },
                 [&](const LoggedAccess &one, const std::uint64_t *addresses) {
                   shadow.restore(one, machine_.code().ops[one.op], addresses,
                                  nullptr);
                 });
}

void RaceDetector::restoreAll() {
  restoreOf([](std::uint32_t) { return true; });
}

void RaceDetector::restoreFallen() {
  restoreOf([&](std::uint32_t op) { return extents_.hasFallen(op); });
  extents_.settle();
}

void RaceDetector::restoreLayer(Access &access, ShadowedMemory &memory,
                                std::uint64_t number, const Layer &touched) {
  Shadow::Page &page = memory.cells.page(number);
  std::size_t reads = page.reads ? page.reads->list().size() : 0;
  if (!page.isSplit && page.layers.size() < Shadow::kMaxLayers &&
      reads < Shadow::kMaxReads) {
    if (touched.record.isWrite())
      return putLayer(page, touched, access.logged->edge);
    if (!page.reads)
      page.reads = std::make_unique<Reads>();
    return page.reads->add(touched, access.logged->edge);
  }
  for (CellSet left = touched.cells; left; left &= left - 1) {
    auto cell = static_cast<std::size_t>(std::countr_zero(left));
    access.record = touched.recordOf(cell);
    access.record.time = access.logged->time;
    restore(access, memory, number * Shadow::kPageCells + cell,
            touched.record.bytes);
  }
}

void RaceDetector::restore(Access &access, ShadowedMemory &memory,
                           std::uint64_t index, std::uint16_t bytes) {
  Cell &cell = memory.cells.cell(index);
  const Record &later = access.record;
  bool isStrong = later.isStrong(), isStore = later.isWrite() && !isStrong;
  memory.cells.forEachAlone(cell, [&](Record &earlier) {
    if (earlier.time == later.time && earlier.component == later.component)
      return;
    // A store comes behind what it meets, or it would not have waited; strong
    // accesses may race with who is not ordered after the later ones.
    bool isGone = isStore || (isReplaced(access, earlier) &&
                              (!isStrong || earlier.isStrong()));
    if (isGone)
      earlier.bytes &= static_cast<std::uint16_t>(~bytes);
  });
  put(access, memory, cell, bytes);
}

} // namespace kiln::sim
