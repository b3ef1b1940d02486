// LaunchObserver: count instructions and ticks, and pass events on to the
// timeline.
#include "sim/report/LaunchObserver.h"
#include "support/HostProcessor.h"

#include <algorithm>

namespace kiln::sim {

void CostCount::add(const CostCount &other) {
  for (int i = 0; i < kCostClasses; ++i) {
    instructions[i] += other.instructions[i];
    ticks[i] += other.ticks[i];
  }
  checkTicks += other.checkTicks;
}

LaunchStats statsOf(const CostCount &cost, double usPerTick, double totalUs) {
  static constexpr const char *kNames[kCostClasses] = {
      "scalar", "memory", "tma", "wgmma", "barrier"};
  LaunchStats stats;
  double known = 0;
  for (int i = 0; i < kCostClasses; ++i)
    stats.costs.push_back({kNames[i], cost.instructions[i],
                           static_cast<double>(cost.ticks[i]) * usPerTick});
  stats.costs.push_back(
      {"checks", 0, static_cast<double>(cost.checkTicks) * usPerTick});
  for (const LaunchStats::Cost &one : stats.costs)
    known += one.time_us;
  // Turns, groups, branches between instructions, and the counting itself.
  stats.costs.push_back({"other", 0, std::max(0.0, totalUs - known)});
  return stats;
}

LaunchObserver::LaunchObserver(bool isTiming, bool isDrawing)
    : recorder(isDrawing ? std::make_unique<Recorder>() : nullptr),
      isTiming_(isTiming) {}

void LaunchObserver::before(Warp &warp, const Op &op, LaneMask active) {
  if (recorder)
    recorder->before(warp, op, active);
  if (!isTiming_)
    return;
  began_ = checked_ = ticksNow();
  inside_ = 0;
}

void LaunchObserver::checked(Warp &, const Op &) {
  if (isTiming_)
    checked_ = ticksNow();
}

void LaunchObserver::beginCheck() {
  if (isTiming_ && depth_++ == 0)
    entered_ = ticksNow();
}

void LaunchObserver::endCheck() {
  if (!isTiming_ || --depth_ > 0)
    return;
  std::uint64_t ticks = ticksNow() - entered_;
  cost.checkTicks += ticks;
  inside_ += ticks;
}

void LaunchObserver::after(Warp &warp, const Op &op, LaneMask active,
                           Step step) {
  if (isTiming_) {
    auto kind = static_cast<std::size_t>(op.effect->cost);
    cost.ticks[kind] += ticksNow() - checked_ - inside_;
    cost.checkTicks += checked_ - began_;
    cost.instructions[kind] += step != Step::blocked;
  }
  if (recorder)
    recorder->after(warp, op, active, step);
}

} // namespace kiln::sim
