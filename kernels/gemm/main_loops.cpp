// main_loops: a row for each.
#include "gemm/main_loops.h"

#include <array>
#include <string>

namespace kiln::gemm_kernel {

static constexpr std::array kMainLoops = {
    MainLoopKind{
        .instruction = "wgmma.mma_async",
        .integer_instruction = "wgmma.mma_async",
        .has_sums_in_registers = true,
        .store_rows = 64,
        .has_multistage = true,
        .has_a_in_registers = true,
        .has_split_k = true,
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
        .integer_instruction = "tcgen05.mma.kind::i8",
        .has_sums_in_registers = false,
        .store_rows = 128, // lanes of tensor memory
        .has_multistage = false,
        .has_a_in_registers = false,
        .has_split_k = false,
        .has_multicast = false,
        .has_pairs = true,
        .has_f16_sums = false,
        .has_subbyte = true,
        .has_block_scales = false,
        .has_hardware_scales = true,
        .check_tile = check_tcgen05_tile,
        .make = make_tcgen05_kernel,
    },
};

/// "wgmma.mma_async (sm_90a) or tcgen05.mma (sm_100a, sm_103a, sm_110a)"
static std::string describe_main_loops() {
  std::string text;
  for (const MainLoopKind &row : kMainLoops) {
    std::string targets;
    for (std::string_view word : DeviceDescription::known_names()) {
      const DeviceDescription &device = DeviceDescription::by_name(word);
      if (device.has(row.instruction) &&
          targets.find(device.target()) == std::string::npos)
        targets += (targets.empty() ? "" : ", ") + device.target();
    }
    text += fmt::format("{}{} ({})", text.empty() ? "" : " or ",
                        row.instruction, targets);
  }
  return text;
}

const MainLoopKind &main_loop_of(const DeviceDescription &device) {
  for (const MainLoopKind &row : kMainLoops)
    if (device.has(row.instruction))
      return row;
  refuse("gemm has no kernel for {} ({}), which has {}; it multiplies with {}",
         device.target(), device.name, name(device.tensor_core),
         describe_main_loops());
}

} // namespace kiln::gemm_kernel
