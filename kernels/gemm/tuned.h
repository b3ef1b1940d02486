// tuned: schedules of problems that were measured, where the one that seems
// cheapest is not the fastest.
#pragma once

#include <kiln/gemm.h>

#include <optional>

namespace kiln::gemm_kernel {

/// The fastest schedule that was found for the problem on that device, fitted.
std::optional<GemmSchedule> tuned_schedule(const GemmProblem &problem,
                                           const DeviceDescription &device);

} // namespace kiln::gemm_kernel
