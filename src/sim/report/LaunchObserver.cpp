// LaunchObserver: count instructions and ticks, and pass events on to the
// timeline.
#include "sim/report/LaunchObserver.h"
#include "sim/machine/Cluster.h"
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

EventMask LaunchObserver::interests() const {
  EventMask mask = maskOf(EventKind::instruction);
  return recorder ? mask | maskOf(EventKind::access) : mask;
}

void LaunchObserver::on(const AsyncAccess &event) {
  if (recorder)
    recorder->take(event);
}

void LaunchObserver::watch(Cluster &cluster) {
  // Its time begins before what the checks do.
  cluster.watchers().addFirst(*this);
  if (isTiming_)
    cluster.watchers().setClock(this);
}

void LaunchObserver::watchDetail(Cluster &cluster, RaceDetector *races) {
  watch(cluster);
  detail = std::make_unique<DetailRecorder>(cluster, *recorder, races);
  cluster.watchers().add(*detail);
}

void LaunchObserver::on(const InstructionBegin &event) {
  if (recorder)
    recorder->before(event.warp, event.op, event.lanes);
  if (!isTiming_)
    return;
  began_ = ticksNow();
  inside_ = 0;
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

void LaunchObserver::on(const InstructionEnd &event) {
  if (isTiming_) {
    auto kind = static_cast<std::size_t>(event.op.effect->cost);
    cost.ticks[kind] += ticksNow() - began_ - inside_;
    cost.instructions[kind] += event.step != Step::blocked;
  }
  if (recorder)
    recorder->after(event.warp, event.op, event.lanes, event.step);
}

} // namespace kiln::sim
