// main_loops: a row for each.
#include "gemm/main_loops.h"

#include <array>
#include <string>
#include <vector>

namespace kiln::gemm_kernel {

static constexpr GemmKind kWithRoles[] = {
    GemmKind::pingpong, GemmKind::cooperative, GemmKind::warp_specialized};
static constexpr GemmKind kWithoutRoles[] = {GemmKind::multistage};

// A device runs the first that it has.
static constexpr std::array kMainLoops = {
    MainLoopKind{
        .instruction = "wgmma.mma_async",
        .copy = "cp.async.bulk",
        .integer_instruction = "wgmma.mma_async",
        .byte_instruction = "wgmma.mma_async",
        .has_tma = true,
        .has_sums_in_registers = true,
        .store_rows = 64,
        .multistage_consumers = 1,
        .kinds = kWithRoles,
        .k_bytes = {128, 256},
        .most_stages = 12,
        .has_a_in_registers = true,
        .split_kind = GemmKind::warp_specialized,
        .beside_sums = 32,
        .has_multicast = true,
        .has_pairs = false,
        .has_f16_sums = true,
        .has_subbyte = false,
        .has_block_scales = true,
        .has_hardware_scales = false,
        .check_tile = check_wgmma_tile,
        .make = make_wgmma_kernel,
    },
    MainLoopKind{
        .instruction = "tcgen05.mma",
        .copy = "cp.async.bulk",
        .integer_instruction = "tcgen05.mma.kind::i8",
        .byte_instruction = "tcgen05.mma",
        .has_tma = true,
        .has_sums_in_registers = false,
        .store_rows = 128, // lanes of tensor memory
        .multistage_consumers = 0,
        .kinds = kWithRoles,
        .k_bytes = {128, 256},
        .most_stages = 12,
        .has_a_in_registers = false,
        .split_kind = std::nullopt,
        .beside_sums = 32,
        .has_multicast = false,
        .has_pairs = true,
        .has_f16_sums = false,
        .has_subbyte = true,
        .has_block_scales = false,
        .has_hardware_scales = true,
        .check_tile = check_tcgen05_tile,
        .make = make_tcgen05_kernel,
    },
    MainLoopKind{
        .instruction = "mma.sync.m16n8k16",
        .copy = "cp.async.bulk",
        .integer_instruction = "mma.sync.m16n8k32.s8",
        .byte_instruction = "mma.sync.m16n8k32.e4m3",
        .has_tma = true,
        .has_sums_in_registers = true,
        .store_rows = 64,
        .multistage_consumers = 1,
        .kinds = kWithRoles,
        .k_bytes = {64, 128},
        .most_stages = 8,
        .has_a_in_registers = false,
        .split_kind = GemmKind::warp_specialized,
        .beside_sums = 64,
        .has_multicast = false,
        .has_pairs = false,
        .has_f16_sums = true,
        .has_subbyte = false,
        .has_block_scales = true,
        .has_hardware_scales = false,
        .check_tile = check_mma_tile,
        .make = make_wgmma_kernel,
    },
    MainLoopKind{
        .instruction = "mma.sync.m16n8k16",
        .copy = "cp.async",
        .integer_instruction = "mma.sync.m16n8k32.s8",
        .byte_instruction = "mma.sync.m16n8k32.e4m3",
        .has_tma = false,
        .has_sums_in_registers = true,
        .store_rows = 64,
        .multistage_consumers = 2,
        .kinds = kWithoutRoles,
        .k_bytes = {64, 128},
        .most_stages = 5,
        .has_a_in_registers = false,
        .split_kind = GemmKind::multistage,
        .beside_sums = 64,
        .has_multicast = false,
        .has_pairs = false,
        .has_f16_sums = true,
        .has_subbyte = false,
        .has_block_scales = false,
        .has_hardware_scales = false,
        .check_tile = check_mma_tile,
        .make = make_mma_kernel,
    },
};

static const MainLoopKind *find_main_loop(const DeviceDescription &device) {
  for (const MainLoopKind &row : kMainLoops)
    if (device.has(row.instruction) && device.has(row.copy))
      return &row;
  return nullptr;
}

/// "wgmma.mma_async (sm_90a), tcgen05.mma (sm_100a, sm_103a, sm_110a) or ..."
static std::string describe_main_loops() {
  std::vector<std::pair<std::string_view, std::string>> loops;
  for (const MainLoopKind &row : kMainLoops)
    if (loops.empty() || loops.back().first != row.instruction)
      loops.push_back({row.instruction, ""});
  for (std::string_view word : DeviceDescription::known_names()) {
    const DeviceDescription &device = DeviceDescription::by_name(word);
    const MainLoopKind *row = find_main_loop(device);
    for (auto &[instruction, targets] : loops)
      if (row && row->instruction == instruction &&
          targets.find(device.target()) == std::string::npos)
        targets += (targets.empty() ? "" : ", ") + device.target();
  }
  std::string text;
  for (std::size_t i = 0; i < loops.size(); ++i)
    text += fmt::format("{}{} ({})",
                        i == 0                  ? ""
                        : i + 1 == loops.size() ? " or "
                                                : ", ",
                        loops[i].first, loops[i].second);
  return text;
}

const MainLoopKind &main_loop_of(const DeviceDescription &device) {
  if (const MainLoopKind *row = find_main_loop(device))
    return *row;
  refuse("gemm has no kernel for {} ({}), which has {}; it multiplies with {}",
         device.target(), device.name, name(device.tensor_core),
         describe_main_loops());
}

} // namespace kiln::gemm_kernel
