// RaceEarly: what a dependent launch does before it knows of its primary's end.
#include "sim/checks/RaceDetector.h"
#include "sim/machine/Machine.h"

namespace kiln::sim {

bool RaceDetector::knowsPrimary(Warp &warp) const {
  // Lanes that run together know of each other's wait.
  const Epoch *known =
      warp.group().clocks.deFacto().clock.find(View::completed, kPrimaryEnd);
  return known && known->all > 0;
}

void RaceDetector::noteEarly(const Access &access, std::uint64_t cell,
                             std::uint16_t bytes) {
  if (knowsPrimary(*access.warp))
    return;
  const Warp &warp = *access.warp;
  early_->add(cell, {.op = access.record.op,
                     .cta = warp.clock.cta,
                     .thread = static_cast<std::uint32_t>(
                         warp.thread(firstLane(access.issuers))),
                     .bytes = bytes,
                     .isWrite = access.record.isWrite(),
                     .isStrong = access.record.isStrong()});
}

} // namespace kiln::sim
