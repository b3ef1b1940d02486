// kernel: the kernel of a problem and a schedule that go together.
#pragma once

#include <kiln/kernels/gemm.h>

namespace kiln::gemm_kernel {

/// `schedule` has been through fit().
Module build_kernel(const GemmProblem &problem, const GemmSchedule &schedule,
                    const GemmDebug &debug, const DeviceDescription &device);

} // namespace kiln::gemm_kernel
