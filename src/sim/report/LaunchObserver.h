// LaunchObserver: counts what a cluster does, draws its timeline, and notes its
// details.
#pragma once

#include "kiln/run/device.h"
#include "sim/machine/events/Watchers.h"
#include "sim/program/Effect.h"
#include "sim/report/DetailRecorder.h"
#include "sim/report/Recorder.h"

#include <array>
#include <memory>

namespace kiln::sim {

/// Instructions and processor ticks by class.
struct CostCount {
  std::array<std::uint64_t, kCostClasses> instructions{}, ticks{};
  std::uint64_t checkTicks = 0;

  void add(const CostCount &other);
};

class LaunchObserver final : public Watcher, public CheckClock {
public:
  LaunchObserver(bool isTiming, bool isDrawing);

  /// Be told of a cluster's events.
  void watch(Cluster &cluster);
  /// The same, and note details; `races` as DetailRecorder has them.
  void watchDetail(Cluster &cluster, RaceDetector *races);
  EventMask interests() const override;
  using Watcher::on;
  void on(const InstructionBegin &event) override;
  void on(const InstructionEnd &event) override;
  void on(const AsyncAccess &event) override;
  void beginCheck() override;
  void endCheck() override;

  CostCount cost;
  std::unique_ptr<Recorder> recorder; ///< null: no timeline is wanted
  std::unique_ptr<DetailRecorder> detail; ///< null: no details are wanted

private:
  bool isTiming_;
  std::uint64_t began_ = 0;
  std::uint64_t entered_ = 0; ///< when the check that is under way began
  std::uint64_t inside_ = 0;  ///< of checks of the instruction so far
  int depth_ = 0;             ///< checks that are under way
};

/// The account of a launch that took `totalUs` of all threads together.
LaunchStats statsOf(const CostCount &cost, double usPerTick, double totalUs);

} // namespace kiln::sim
