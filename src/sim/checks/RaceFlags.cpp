// RaceFlags: data that is passed on by a flag, and the fence that is missing.
//
// Two strong accesses (volatile, relaxed, atomic) are no data race, whatever
// their order. But where a thread reads a flag or takes a lock, and then data
// that was written before the flag was set, it relies on an order that only
// fences give: without them the old data may be read. So each strong write
// announces what was done before it, each strong read hears that, and data that
// is ordered by hearsay alone is a finding.
#include "sim/checks/RaceDetector.h"
#include "sim/machine/Machine.h"
#include "sim/program/Effect.h"

namespace kiln::sim {

RaceDetector::Verdict
RaceDetector::judgeAnnounced(const Access &access, const Record &earlier,
                             std::uint16_t overlap) const {
  const LaneClocks &clocks = access.warp->group().clocks;
  const Epoch *known =
      clocks.deFacto().apparent.find(View::completed, earlier.component);
  if (!known || !known->covers(earlier.time, earlier.lanesOf(overlap)))
    return Verdict::strong;
  return isOrderedDeFacto(access, earlier, overlap, View::generic)
             ? Verdict::deFacto
             : Verdict::announced;
}

void RaceDetector::reportAnnounced(Access &access, const Record &suspect,
                                   ShadowedMemory &memory,
                                   std::uint64_t index) {
  if (access.op->semantics.isAtomic ||
      suspect.component == access.warp->clock.lanes)
    return;
  Verdict verdict = judgeAnnounced(access, suspect, suspect.bytes);
  // Who waits for the value reads until it is there.
  if (verdict == Verdict::strong || access.op->decidesLoop)
    return;
  // Nor does who hears from one that has read it.
  bool isRead = false;
  memory.cells.forEach(memory.cells.cell(index), [&](const Record &record) {
    isRead |= !record.isWrite() && (record.bytes & suspect.bytes) &&
              record.component != suspect.component;
  });
  if (!isRead)
    report(access, suspect, suspect.bytes, memory, index, verdict);
}

} // namespace kiln::sim
