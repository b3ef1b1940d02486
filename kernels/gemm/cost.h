// cost: how long a schedule takes, as far as a few numbers can tell.
//
// A CTA's tile takes as long as the slowest of three things does: the tensor
// core's work, the traffic of its shared memory, and the arrival of its
// operands. Tiles come in rounds, as many at once as the device holds CTAs, and
// clusters of them. Beside all that, every byte crosses the bus to memory once,
// and again where several CTAs ask for it before L2 has it.
// What surrounds it (launch, the first load, the way out) is a number each.
//
// The numbers were fitted to schedules measured on an H200
// (bench/results/h200/schedules.json), in clocks, so that they follow the
// device's own clock, bandwidth and count of multiprocessors.
#pragma once

#include <kiln/kernels/gemm.h>

namespace kiln::gemm_kernel {

/// A size, or a typical one where it is known at launch.
inline double typical(const Dim &dim) {
  return dim.is_constant() ? static_cast<double>(dim.constant()) : 4096;
}

/// Of a schedule whose stages, consumers and instructions are filled in, for
/// typical sizes.
GemmCost cost_of(const GemmProblem &problem, const GemmSchedule &schedule,
                 const DeviceDescription &device);

} // namespace kiln::gemm_kernel
