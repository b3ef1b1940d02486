// LaunchChecks: everything that is checked while a launch runs.
//
// What events mean for the order of accesses stands in LaunchOrder.cpp, what
// they mean for registers in LaunchChecks.cpp.
#pragma once

#include "sim/checks/RaceDetector.h"
#include "sim/checks/ThreadAccesses.h"
#include "sim/machine/events/Watchers.h"

namespace kiln::sim {

class LaunchChecks final : public Watcher {
public:
  /// `keepsValues`: as RaceDetector does.
  explicit LaunchChecks(Machine &machine, bool keepsValues = false)
      : races_(machine, keepsValues), accesses_(races_) {}

  RaceDetector &races() { return races_; }
  EventMask interests() const override;
  std::uint64_t bytes() const override;

  using Watcher::on; // of what the checks have no use for
  void on(const WarpBegin &event) override { races_.begin(event.warp); }
  void on(const CtaBegin &event) override { races_.begin(event.cta); }
  void on(const LanesEnd &event) override {
    races_.leave(event.warp, event.lanes);
  }
  void on(const CtaEnd &event) override { races_.end(event.cta); }
  void on(const ClusterEnd &event) override { races_.end(event.cluster); }
  void on(const RegisterUse &event) override;
  void on(const ThreadAccess &event) override { accesses_.take(event); }
  void on(const AsyncAccess &event) override;
  void on(const OperandRead &event) override;
  void on(const TensorMapUse &event) override;
  void on(const AsyncBegin &event) override;
  void on(const CopyGroup &event) override;
  void on(const CopyArrival &event) override;
  void on(const WgmmaBegin &event) override;
  void on(const WgmmaEnd &event) override;
  void on(const TensorMoveBegin &event) override;
  void on(const TensorMoveEnd &event) override;
  void on(const TensorCommit &event) override;
  void on(const TensorArrival &event) override;
  void on(const MbarrierEvent &event) override;
  void on(const MbarrierPhase &event) override;
  void on(const CtaBarrierArrive &event) override;
  void on(const CtaBarrierWait &event) override;
  void on(const ClusterBarrierArrive &event) override;
  void on(const ClusterBarrierWait &event) override;
  void on(const WarpBarrier &event) override;
  void on(const PrimaryWait &event) override;
  void on(const DependentsLaunch &event) override;
  void on(const Fence &event) override;
  void on(const Allocation &event) override;

private:
  /// The component and the time of what an asynchronous access belongs to.
  std::pair<Component, std::uint32_t> timeOf(const AsyncAccess &event);

  RaceDetector races_;
  ThreadAccesses accesses_;
  /// When the asynchronous operations of the instruction were begun: all lanes
  /// at once.
  std::uint32_t begun_ = 0;
};

} // namespace kiln::sim
