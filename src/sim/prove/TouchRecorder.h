// TouchRecorder: from what the machine tells to touches of the step at hand.
#pragma once

#include "sim/machine/events/Watchers.h"
#include "sim/prove/ChoicePoints.h"
#include "sim/prove/Touch.h"

#include <map>
#include <optional>

namespace kiln::sim {

class TouchRecorder final : public Watcher {
public:
  using Watcher::on; // of what no touch follows from

  explicit TouchRecorder(const ChoicePoints &stops) : stops_(stops) {}

  /// The order of setmaxnreg decides who gets registers.
  bool registersMatter = false;

  /// A group is about to go on; `isAtStop`: with an instruction that is a stop.
  void beginLanes(Warp &warp, const Group &group, bool isAtStop);
  /// A piece of work in flight is about to be done.
  void beginWork();
  /// What the step has touched so far, each once.
  Touches take();
  /// The instruction that did it; null: none has told of itself.
  const Op *op() const { return op_; }
  /// Words that reductions will change which the step has issued.
  const Touches &issued() const { return issued_; }

  EventMask interests() const override {
    return maskOf(EventKind::barrier, EventKind::access, EventKind::async,
                  EventKind::lifetime, EventKind::allocation);
  }
  void on(const MbarrierEvent &event) override;
  void on(const MbarrierBytes &event) override;
  void on(const CopyArrival &event) override;
  void on(const TensorArrival &event) override;
  void on(const CtaBarrierArrive &event) override;
  void on(const CtaBarrierWait &event) override;
  void on(const ClusterBarrierArrive &event) override;
  void on(const ClusterBarrierWait &event) override;
  void on(const LanesEnd &event) override;
  void on(const ThreadAccess &event) override;
  void on(const AsyncAccess &event) override;
  void on(const Allocation &event) override;

private:
  /// Where an mbarrier is.
  struct Place {
    std::uint32_t cta, address;
  };

  void add(Touch::Of of, Touch::How how, std::uint32_t place,
           std::uint64_t object, std::uint64_t phase = 0) {
    touches_.push_back({of, how, place, object, phase});
  }
  void addArrival(const MbarrierState &barrier);
  /// Barriers for all threads of a CTA count those that are left.
  void addLive(Cta &cta, Touch::How how);

  const ChoicePoints &stops_;
  std::map<const MbarrierState *, Place> places_;
  Touches touches_, issued_;
  const Op *op_ = nullptr, *stop_ = nullptr;
  bool isAwaiting_ = false;
  /// The barrier of the CTA that the step arrived at, or waits at.
  std::uint64_t barrier_ = 0, round_ = 0;
};

} // namespace kiln::sim
