// vector_kernel: a matrix times a vector.
#pragma once

#include <kiln/kernels/gemm.h>

namespace kiln::gemm_kernel {

/// The schedule, complete, or UserError where the product is none of a vector
/// or the schedule asks for what this kernel does not have.
GemmSchedule fit_vector(const GemmProblem &problem,
                        const GemmSchedule &schedule);

/// `schedule` has been through fit_vector().
Module build_vector_kernel(const GemmProblem &problem,
                           const GemmSchedule &schedule,
                           const DeviceDescription &device);

} // namespace kiln::gemm_kernel
