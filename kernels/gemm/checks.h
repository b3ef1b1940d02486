// checks: refuse problems and schedules that do not go together, each with what
// would. All throw UserError; schedules have been filled in.
#pragma once

#include "gemm/device/operands.h"

#include <kiln/base/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace kiln::gemm_kernel {

template <typename... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args &&...args) {
  throw UserError(fmt::format(format, std::forward<Args>(args)...));
}

template <typename... Args>
[[noreturn]] void refuse_tile(const GemmSchedule &schedule,
                              fmt::format_string<Args...> format,
                              Args &&...args) {
  refuse("tile {}x{}x{}: {}", schedule.tile_m, schedule.tile_n, schedule.tile_k,
         fmt::format(format, std::forward<Args>(args)...));
}

template <std::size_t N>
bool is_one_of(Type type, const std::array<Type, N> &types) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

// What stands under `check` in the table of the problem's fields.

/// A dimension; `label` is for the message.
void check_dim(std::string_view label, const Dim &dim);
void check_type(const GemmProblem &problem, const DeviceDescription &device);
void check_out(const GemmProblem &problem, const DeviceDescription &device);
void check_layout(const GemmProblem &problem, const DeviceDescription &device);
void check_accumulator(const GemmProblem &problem,
                       const DeviceDescription &device);
/// Rows that overlap, and matrices that cannot be addressed.
void check_a(const GemmProblem &problem, const DeviceDescription &device);
void check_b(const GemmProblem &problem, const DeviceDescription &device);
void check_c(const GemmProblem &problem, const DeviceDescription &device);
void check_d(const GemmProblem &problem, const DeviceDescription &device);
/// Products of a batch must not write the same elements of D: they lie one
/// behind the other, or side by side in its rows.
void check_products(const GemmProblem &problem,
                    const DeviceDescription &device);
/// Factors, and the rows of elements that share bytes.
void check_scaling(const GemmProblem &problem, const DeviceDescription &device);

/// Steps and tiles are whole blocks, or pieces, of factors.
void check_scaled_tile(const GemmProblem &problem,
                       const GemmSchedule &schedule);
/// Roles, cluster and order.
void check_roles(const KernelProblem &computed, const GemmSchedule &schedule,
                 const DeviceDescription &device);
/// CTAs of the grid that can divide K.
inline constexpr int kMostOfGrid = 128;
/// Workspaces of a known size.
void check_workspaces(const KernelProblem &computed,
                      const GemmSchedule &schedule);
/// Tiles that wgmma, mma.sync or tcgen05.mma does not cover, and those whose
/// sums have no room.
void check_wgmma_tile(const GemmProblem &problem, const GemmSchedule &schedule,
                      const DeviceDescription &device);
void check_mma_tile(const GemmProblem &problem, const GemmSchedule &schedule,
                    const DeviceDescription &device);
void check_tcgen05_tile(const GemmProblem &problem,
                        const GemmSchedule &schedule,
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
/// What multiplies needs of them beside the sums, where ptxas shares them out.
int registers_beside_sums(const GemmProblem &problem,
                          const GemmSchedule &schedule,
                          const DeviceDescription &device);
/// Columns of tensor memory that the sums of all consumers and the factors of
/// a step take: what can be allocated.
int tensor_columns(const GemmProblem &problem, const GemmSchedule &schedule);

} // namespace kiln::gemm_kernel
