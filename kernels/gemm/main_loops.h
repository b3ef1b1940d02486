// main_loops: the main loops that there are, one for each kind of tensor core,
// and what each can do. Schedules, checks and kernels ask these rows.
#pragma once

#include "checks.h"
#include "gemm/device/main_loop.h"

#include <array>
#include <optional>
#include <span>
#include <string_view>

namespace kiln::gemm_kernel {

struct MainLoopKind {
  /// What it multiplies with, and what brings its operands: a device that has
  /// both can run it.
  std::string_view instruction, copy;
  std::string_view integer_instruction; ///< the first of i8 and u8,
  std::string_view byte_instruction;    ///< and of e4m3 and e5m2
  bool has_tma;
  /// Sums are in the registers of consumers, which roles then share out; else
  /// in tensor memory.
  bool has_sums_in_registers;
  int store_rows; ///< of an epilogue tile: a multiple of it
  /// Warpgroups of a multistage schedule at most; 0: there is none.
  int multistage_consumers;
  /// What is tried, and how many bytes a row of a K tile has.
  std::span<const GemmKind> kinds;
  std::array<int, 2> k_bytes;
  int most_stages;
  bool has_a_in_registers;
  std::optional<GemmKind> split_kind; ///< whose CTAs divide K
  /// Registers of a thread beside its sums, where ptxas shares them out.
  int beside_sums;
  bool has_multicast; ///< of operands that CTAs of a cluster share
  bool has_pairs;     ///< of CTAs that multiply together
  bool has_f16_sums, has_subbyte;
  bool has_block_scales;    ///< f32, of blocks
  bool has_hardware_scales; ///< mx and nv
  void (*check_tile)(const GemmProblem &problem, const GemmSchedule &schedule,
                     const DeviceDescription &device);
  std::unique_ptr<MainLoop> (*make)(const GemmProblem &problem,
                                    const GemmSchedule &schedule,
                                    const GemmDebug &debug,
                                    const DeviceDescription &device);
};

/// The one that a device runs. Throws UserError where there is none for it.
const MainLoopKind &main_loop_of(const DeviceDescription &device);

} // namespace kiln::gemm_kernel
