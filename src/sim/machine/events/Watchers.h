// Watchers: who is told of events, and the mask that says whether anybody is.
//
// A run that nobody watches pays for a test of the mask. What a watcher does
// not override it is not told to do anything about.
#pragma once

#include "sim/machine/events/Events.h"

#include <utility>
#include <vector>

namespace kiln::sim {

class Watcher {
public:
  virtual ~Watcher() = default;

  /// What it wants to be told of.
  virtual EventMask interests() const = 0;
  /// Memory of the host that it takes.
  virtual std::uint64_t bytes() const { return 0; }

  virtual void on(const WarpBegin &) {}
  virtual void on(const CtaBegin &) {}
  virtual void on(const LanesEnd &) {}
  virtual void on(const CtaEnd &) {}
  virtual void on(const ClusterEnd &) {}
  virtual void on(const InstructionBegin &) {}
  virtual void on(const InstructionSkip &) {}
  virtual void on(const InstructionEnd &) {}
  virtual void on(const RegisterUse &) {}
  virtual void on(const ThreadAccess &) {}
  virtual void on(const AsyncAccess &) {}
  virtual void on(const OperandRead &) {}
  virtual void on(const TensorMapUse &) {}
  virtual void on(const AsyncBegin &) {}
  virtual void on(const CopyGroup &) {}
  virtual void on(const CopyArrival &) {}
  virtual void on(const WgmmaBegin &) {}
  virtual void on(const WgmmaEnd &) {}
  virtual void on(const TensorMoveBegin &) {}
  virtual void on(const TensorMoveEnd &) {}
  virtual void on(const TensorCommit &) {}
  virtual void on(const TensorArrival &) {}
  virtual void on(const MbarrierEvent &) {}
  virtual void on(const MbarrierBytes &) {}
  virtual void on(const MbarrierPhase &) {}
  virtual void on(const CtaBarrierArrive &) {}
  virtual void on(const CtaBarrierWait &) {}
  virtual void on(const ClusterBarrierArrive &) {}
  virtual void on(const ClusterBarrierWait &) {}
  virtual void on(const WarpBarrier &) {}
  virtual void on(const PrimaryWait &) {}
  virtual void on(const DependentsLaunch &) {}
  virtual void on(const Fence &) {}
  virtual void on(const Allocation &) {}
};

/// Who counts the time that goes to the checks.
class CheckClock {
public:
  virtual void beginCheck() = 0;
  virtual void endCheck() = 0;

protected:
  ~CheckClock() = default;
};

/// While it lives, time goes to the checks, whoever is executed.
class CheckTime {
public:
  /// null: nobody counts.
  explicit CheckTime(CheckClock *clock) : clock_(clock) {
    if (clock_)
      clock_->beginCheck();
  }
  CheckTime(const CheckTime &) = delete;
  CheckTime &operator=(const CheckTime &) = delete;
  ~CheckTime() {
    if (clock_)
      clock_->endCheck();
  }

private:
  CheckClock *clock_;
};

/// Those who watch a cluster.
class Watchers {
public:
  /// Tell it of what it is interested in, behind the others.
  void add(Watcher &watcher) { insert(list_.size(), watcher, false); }
  /// The same of one that checks, whose time is counted as such.
  void addCheck(Watcher &watcher) { insert(list_.size(), watcher, true); }
  /// The same, before the others.
  void addFirst(Watcher &watcher) { insert(0, watcher, false); }
  void setClock(CheckClock *clock) { clock_ = clock; }

  /// Whether somebody wants to be told.
  bool wants(EventKind kind) const { return mask_ & maskOf(kind); }
  CheckClock *clock() const { return clock_; }

  template <typename Event> void tell(const Event &event) const {
    if (!wants(Event::kKind))
      return;
    for (const Entry &entry : list_) {
      if (!(entry.mask & maskOf(Event::kKind)))
        continue;
      CheckTime time(entry.isCheck ? clock_ : nullptr);
      entry.watcher->on(event);
    }
  }

private:
  struct Entry {
    Watcher *watcher;
    EventMask mask;
    bool isCheck;
  };
  void insert(std::size_t index, Watcher &watcher, bool isCheck) {
    EventMask mask = watcher.interests();
    list_.insert(list_.begin() + static_cast<std::ptrdiff_t>(index),
                 {&watcher, mask, isCheck});
    mask_ |= mask;
  }

  EventMask mask_ = 0;
  CheckClock *clock_ = nullptr;
  std::vector<Entry> list_; ///< in the order in which they are told
};

} // namespace kiln::sim
