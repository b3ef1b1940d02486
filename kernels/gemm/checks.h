// checks: refuse problems and schedules that do not go together, each with what
// would. All throw UserError; schedules have been filled in.
#pragma once

#include "operands.h"

#include <kiln/error.h>

#include <fmt/format.h>

#include <utility>

namespace kiln::gemm_kernel {

template <typename... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args &&...args) {
  throw UserError(fmt::format(format, std::forward<Args>(args)...));
}

void check_problem(const GemmProblem &problem, const DeviceDescription &device);
/// Roles, cluster and order.
void check_roles(const KernelProblem &computed, const GemmSchedule &schedule,
                 const DeviceDescription &device);
/// What the instruction can cover.
void check_tile(const KernelProblem &computed, const GemmSchedule &schedule,
                const DeviceDescription &device);
/// The way out.
void check_epilogue(const KernelProblem &computed, const GemmSchedule &schedule,
                    const DeviceDescription &device);

/// Sums in the registers of each thread that multiplies.
int accumulator_registers(const GemmProblem &problem,
                          const GemmSchedule &schedule);
/// Columns of tensor memory that the sums of all consumers take: what can be
/// allocated.
int tensor_columns(const GemmSchedule &schedule);

} // namespace kiln::gemm_kernel
