// Observer: who watches a cluster run, where somebody asked for a timeline or
// for statistics. Without one the interpreter pays for a test of a pointer.
#pragma once

#include "sim/program/Program.h"

namespace kiln::sim {

class Observer {
public:
  virtual ~Observer() = default;

  /// Called around every instruction: before its checks, between them and the
  /// handler, and behind it.
  virtual void before(Warp &warp, const Op &op, LaneMask active) = 0;
  virtual void checked(Warp &warp, const Op &op) = 0;
  virtual void after(Warp &warp, const Op &op, LaneMask active, Step step) = 0;
  /// What is done between the two belongs to the checks.
  virtual void beginCheck() = 0;
  virtual void endCheck() = 0;
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

} // namespace kiln::sim
