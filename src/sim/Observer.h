// Observer: who watches a cluster run, where somebody asked for a timeline or
// for statistics. Without one the interpreter pays for a test of a pointer.
#pragma once

#include "kiln/device.h"
#include "sim/Event.h"
#include "sim/Recorder.h"

#include <array>
#include <memory>

namespace kiln::sim {

/// Instructions and processor ticks by class.
struct CostCount {
  std::array<std::uint64_t, kCostClasses> instructions{}, ticks{};
  std::uint64_t checkTicks = 0;

  void add(const CostCount &other);
};

class Observer {
public:
  Observer(bool isTiming, bool isDrawing);

  /// Called around every instruction: before its checks, between them and the
  /// handler, and behind it.
  void before(Warp &warp, const Op &op, LaneMask active);
  void checked(Warp &warp, const Op &op);
  void after(Warp &warp, const Op &op, LaneMask active, Step step);

  CostCount cost;
  std::unique_ptr<Recorder> recorder; ///< null: no timeline is wanted

private:
  bool isTiming_;
  std::uint64_t began_ = 0, checked_ = 0;
};

/// The account of a launch that took `totalUs` of all threads together.
LaunchStats statsOf(const CostCount &cost, double usPerTick, double totalUs);

/// A counter of the processor that never stops.
std::uint64_t ticksNow();

} // namespace kiln::sim
