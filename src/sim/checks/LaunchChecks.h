// LaunchChecks: everything that is checked while a launch runs.
#pragma once

#include "sim/checks/RaceDetector.h"
#include "sim/machine/Checks.h"

namespace kiln::sim {

class LaunchChecks final : public Checks {
public:
  /// `keepsValues`: as RaceDetector does.
  explicit LaunchChecks(Machine &machine, bool keepsValues = false)
      : races_(machine, keepsValues) {}

  void begin(Warp &warp) override { races_.begin(warp); }
  void begin(Cta &cta) override { races_.begin(cta); }
  void before(Warp &warp, const Op &op, LaneMask active) override;
  void leave(Warp &warp, LaneMask lanes) override { races_.leave(warp, lanes); }
  void end(Cta &cta) override { races_.end(cta); }
  void end(Cluster &cluster) override { races_.end(cluster); }

  RaceDetector &races() override { return races_; }
  std::uint64_t bytes() const override;

private:
  RaceDetector races_;
};

} // namespace kiln::sim
