// tuned: schedules of problems that were measured, where the one that seems
// cheapest is not the fastest.
#pragma once

#include <kiln/kernels/gemm.h>

#include <optional>

namespace kiln::gemm_kernel {

/// The schedule that the tuning database has for the problem, fitted.
std::optional<GemmSchedule> kept_schedule(const GemmProblem &problem,
                                          const DeviceDescription &device);
/// The same of the table that Kiln ships.
std::optional<GemmSchedule> tuned_schedule(const GemmProblem &problem,
                                           const DeviceDescription &device);

} // namespace kiln::gemm_kernel
