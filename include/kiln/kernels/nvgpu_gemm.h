// nvgpu_gemm.h: the published NVGPU products as modules for MLIR's own tools.
//
// A function that allocates, copies, makes tensor maps and launches, with its
// kernel in operations of the nvgpu dialect, and a main that fills matrices,
// calls it and compares: `kiln run` and mlir-runner print PASS. Tiles are
// 128 x 128 x 64; A is M x K and B is K x N, row by row, in f16; C is f32.
//
// The published kernels synchronise too little. Each defect has a repair here;
// without any the module is as it was published.
#pragma once

#include <kiln/base/export.h>

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace KILN_API kiln {

enum class NvgpuRepair : std::uint8_t {
  init_once,      ///< one thread, not one of each warpgroup, makes the barriers
  init_fence,     ///< fence.mbarrier_init before copies may complete on them
  tiles_apart,    ///< tiles behind the barriers, not over them
  await_products, ///< wgmma.wait_group 0 before accumulators are stored
};

/// "init-once"
std::string_view name(NvgpuRepair repair);
/// Throws UserError that lists the names.
NvgpuRepair parse_nvgpu_repair(std::string_view text);
const std::set<NvgpuRepair> &all_nvgpu_repairs();

struct NvgpuGemm {
  std::int64_t m = 128, n = 128, k = 128;
  bool is_warp_specialized = false; ///< else multistage
  int stages = 3;
  std::set<NvgpuRepair> repairs = all_nvgpu_repairs();

  /// "multistage_128x128x4096_128x128x64_3"
  std::string name() const;
};

/// The module's text. Throws UserError where sizes are no multiples of the tile
/// or the stages do not fit.
std::string nvgpu_module(const NvgpuGemm &gemm);

} // namespace kiln
