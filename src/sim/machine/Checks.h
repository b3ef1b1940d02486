// Checks: what the machine tells those who check a launch while it runs.
//
// The machine keeps the data that they need beside its own (clocks, shadows,
// poison); what the data mean, the checks know (checks/).
#pragma once

#include "sim/program/Program.h"

namespace kiln::sim {

class Cluster;
class Cta;
class RaceDetector;
class Warp;

class Checks {
public:
  virtual ~Checks() = default;

  virtual void begin(Warp &warp) = 0;
  /// Its warps have begun.
  virtual void begin(Cta &cta) = 0;
  /// Those lanes are about to execute an instruction.
  virtual void before(Warp &warp, const Op &op, LaneMask active) = 0;
  /// Lanes leave the kernel.
  virtual void leave(Warp &warp, LaneMask lanes) = 0;
  virtual void end(Cta &cta) = 0;
  /// Of several CTAs.
  virtual void end(Cluster &cluster) = 0;

  /// For the units, which tell of every access.
  virtual RaceDetector &races() = 0;
  /// Memory of the host that it takes.
  virtual std::uint64_t bytes() const = 0;
};

} // namespace kiln::sim
