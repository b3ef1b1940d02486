// RaceDeferred: accesses to global memory that cannot collide with anything yet.
//
// Most buffers of a kernel are only read, and some are only changed by atomics.
// As long as that is so none of their accesses needs a place in the shadow: they
// wait in a log, in the order in which they were made (AccessLog), until
// something else touches the bytes between the first and the last of them
// (AccessExtents). Then they are put where they would have been put at once.
// They have collided with nothing since: nothing of that needs to be judged.
#include "sim/checks/RaceDetector.h"
#include "sim/checks/ThreadAccesses.h"
#include "sim/machine/Machine.h"

#include <bit>

namespace kiln::sim {

using Kind = AccessExtents::Kind;

bool RaceDetector::isQuietAtomic(Warp &warp, const Op &op) const {
  const MemorySemantics &order = op.semantics;
  return order.isAtomic && !order.isAcquire && !order.isRelease &&
         !order.isCounter && order.scope == Scope::gpu &&
         !warp.clock.hasStrongStores && global_.locations.empty() &&
         !warp.group().clocks.hasFenced(Scope::cta);
}

void RaceDetector::observeEach(Warp &warp, const Op &op,
                               const AlikeLanes &alike) {
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
    observe(warp, op.semantics, those, global_, alike.addresses[lane]);
  }
}

bool RaceDetector::defer(Warp &warp, const Op &op, const AlikeLanes &alike) {
  // What waits longer than that goes into the shadow after all.
  constexpr std::size_t kMostBytes = std::size_t(8) << 20;
  if (alike.owner || early_ || isByCell)
    return false;
  bool isWeak = !op.semantics.isStrong;
  Kind kind = alike.isWrite  ? Kind::direct
              : isWeak       ? Kind::reads
                             : Kind::direct;
  if (alike.isWrite && isQuietAtomic(warp, op))
    kind = Kind::atomics;
  auto number = static_cast<std::uint32_t>(&op - warp.code().ops.data());
  auto answer =
      extents_.note(number, kind, {alike.low, alike.high + alike.bytes});
  if (answer == AccessExtents::Answer::touchBehind)
    restoreFallen();
  if (answer != AccessExtents::Answer::defer)
    return false;
  Access access = plain(warp, op, alike.isWrite);
  using Form = LoggedAccess::Form;
  LoggedAccess logged{.component = access.record.component,
                      .time = access.record.time,
                      .op = number,
                      .lanes = alike.lanes,
                      .edge = warp.clock.lastEdge,
                      .parting = warp.clock.lastParting,
                      .cta = warp.clock.cta,
                      .flags = access.record.flags,
                      .bytes = static_cast<std::uint8_t>(alike.bytes),
                      .form = alike.pattern == Pattern::uniform ? Form::uniform
                              : alike.pattern == Pattern::consecutive
                                  ? Form::consecutive
                                  : Form::scattered};
  if (kind == Kind::atomics)
    observeEach(warp, op, alike);
  if (!deferred_.add(logged, alike.addresses, alike.low, alike.high)) {
    ThreadAccesses(*this).restore(logged, op, alike.addresses);
    return true;
  }
  if (deferred_.bytes() > kMostBytes)
    restoreAll();
  return true;
}

void RaceDetector::noteDirect(const Op &op, bool isWrite, std::uint64_t begin,
                              std::size_t bytes) {
  if (early_ || isByCell)
    return;
  bool isRead = !isWrite && !op.semantics.isStrong;
  auto number =
      static_cast<std::uint32_t>(&op - machine_.code().ops.data());
  auto answer = extents_.note(number, isRead ? Kind::directReads : Kind::direct,
                              {begin, begin + bytes});
  if (answer == AccessExtents::Answer::touchBehind)
    restoreFallen();
}

void RaceDetector::restoreOf(
    const std::function<bool(std::uint32_t)> &isAmong) {
  if (deferred_.isEmpty())
    return;
  ThreadAccesses shadow(*this);
  deferred_.take(
      [&](const LoggedAccess &one) { return isAmong(one.op); },
      [&](const LoggedAccess &one, const std::uint64_t *addresses) {
        shadow.restore(one, machine_.code().ops[one.op], addresses);
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
  if (!page.isSplit && !touched.record.isWrite()) {
    if (!page.reads)
      page.reads = std::make_unique<Reads>();
    if (page.reads->list().size() < Shadow::kMaxReads)
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
  memory.cells.forEachAlone(cell, [&](Record &earlier) {
    // Strong ones may race with who is not ordered after the later ones.
    bool isGone = isReplaced(access, earlier) && earlier.time != later.time &&
                  (!later.isStrong() || earlier.isStrong());
    if (isGone)
      earlier.bytes &= static_cast<std::uint16_t>(~bytes);
  });
  put(access, memory, cell, bytes);
}

} // namespace kiln::sim
