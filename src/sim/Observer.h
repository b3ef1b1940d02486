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
  friend class CheckTime;
  void beginCheck();
  void endCheck();

  bool isTiming_;
  std::uint64_t began_ = 0, checked_ = 0;
  std::uint64_t entered_ = 0; ///< when the check that is under way began
  std::uint64_t inside_ = 0;  ///< of checks inside the instruction so far
  int depth_ = 0;             ///< checks that are under way
};

/// While it lives, time goes to the checks, whoever is executed.
class CheckTime {
public:
  /// null: nobody counts.
  explicit CheckTime(Observer *observer) : observer_(observer) {
    if (observer_)
      observer_->beginCheck();
  }
  CheckTime(const CheckTime &) = delete;
  CheckTime &operator=(const CheckTime &) = delete;
  ~CheckTime() {
    if (observer_)
      observer_->endCheck();
  }

private:
  Observer *observer_;
};

/// The account of a launch that took `totalUs` of all threads together.
LaunchStats statsOf(const CostCount &cost, double usPerTick, double totalUs);

/// A counter of the processor that never stops.
std::uint64_t ticksNow();

} // namespace kiln::sim
