// tuned: the database of whoever tuned here, and the table that ships, from
// bench/results/h200/schedules.json.
#include "tuned.h"

#include <kiln/base/error.h>
#include <kiln/kernels/tuning.h>

#include <algorithm>

namespace kiln::gemm_kernel {

namespace {
struct Tuned {
  const char *problem, *schedule;
};
} // namespace

/// Of the H200.
static constexpr Tuned kTuned[] = {
    {"1024x1024x1024 bf16 -> bf16 tn",
     "warp-specialized 64x128x64 stages=8 consumers=1 raster-group=1"},
    {"4096x4096x4096 bf16 -> bf16 tn",
     "cooperative 128x256x64 stages=4 cluster=1x2 raster-group=16"},
    {"6144x6144x6144 bf16 -> bf16 tn",
     "cooperative 256x192x64 stages=3 cluster=1x2 raster-group=16"},
    {"8192x8192x8192 bf16 -> bf16 tn",
     "cooperative 256x144x64 stages=4 cluster=2x1 raster=m raster-group=16"},
    {"16384x16384x16384 bf16 -> bf16 tn",
     "cooperative 256x192x64 stages=3 cluster=2x1"},
    {"4096x4096x7168 bf16 -> bf16 tn",
     "cooperative 128x256x64 stages=4 cluster=1x2 raster-group=16"},
    {"8192x28672x4096 bf16 -> bf16 tn",
     "pingpong 128x192x64 stages=4 raster-group=16"},
    {"8192x8192x28672 bf16 -> bf16 tn", "cooperative 256x144x64 stages=4"},
    {"4096x5120x27648 bf16 -> bf16 tn",
     "cooperative 128x256x64 stages=4 raster-group=16"},
    {"2048x37888x3584 bf16 -> bf16 tn",
     "pingpong 128x192x64 stages=4 cluster=1x2 raster-group=16"},
    {"4096x24576x1536 bf16 -> bf16 tn",
     "pingpong 128x176x64 stages=5 cluster=1x2 raster=m raster-group=1"},
    {"4096x32768x512 bf16 -> bf16 tn",
     "pingpong 128x192x64 stages=4 cluster=2x1 raster=m raster-group=4"},
    {"64x2112x7168 bf16 -> bf16 tn",
     "warp-specialized 64x32x128 stages=9 consumers=1 split-k=2"},
    {"128x2112x7168 bf16 -> bf16 tn",
     "warp-specialized 64x128x128 stages=4 consumers=1 split-k=4 split-by=grid "
     "swap=on raster-group=1"},
    {"128x576x7168 bf16 -> bf16 tn",
     "warp-specialized 64x64x128 stages=7 consumers=1 split-k=7 split-by=grid "
     "swap=on raster-group=1"},
    {"16x5376x21504 bf16 -> bf16 tn",
     "warp-specialized 128x16x128 stages=6 consumers=2 split-k=3 split-by=grid "
     "swap=on raster-group=1"},
    {"512x16x500000 bf16 -> bf16 tn", "warp-specialized 64x16x128 stages=11 "
                                      "consumers=1 split-k=15 split-by=grid"},
    {"256x256x16384 bf16 -> bf16 tn",
     "warp-specialized 64x88x128 stages=5 consumers=1 split-k=11 split-by=grid "
     "swap=on"},
    {"128x129280x7168 bf16 -> bf16 tn",
     "cooperative 128x168x64 stages=5 cluster=1x2"},
    {"8192x59136x8192 bf16 -> bf16 tn",
     "cooperative 256x192x64 stages=3 cluster=1x2 raster-group=16"},
    {"4096x2112x7168 e4m3 -> bf16 tn",
     "pingpong 128x176x128 stages=5 cluster=2x1 raster=m raster-group=16"},
    {"4096x24576x1536 e4m3 -> bf16 tn",
     "pingpong 128x192x128 stages=4 raster=m raster-group=1"},
    {"4096x32768x512 e4m3 -> bf16 tn",
     "pingpong 128x192x128 stages=4 cluster=2x1 raster=m raster-group=4"},
    {"4096x7168x16384 e4m3 -> bf16 tn",
     "cooperative 256x176x128 stages=4 cluster=2x1 raster=m raster-group=16"},
    {"4096x4096x7168 e4m3 -> bf16 tn",
     "cooperative 128x256x128 stages=4 cluster=1x2 raster-group=16"},
    {"64x2112x7168 e4m3 -> bf16 tn",
     "warp-specialized 64x16x256 stages=11 consumers=1"},
    {"128x2112x7168 e4m3 -> bf16 tn",
     "warp-specialized 64x32x256 stages=9 consumers=1 swap=on raster-group=1"},
    {"8192x8192x8192 e4m3 -> bf16 tn",
     "pingpong 128x192x128 stages=4 raster-group=16"},
    {"8192x8192x16384 e4m3 -> bf16 tn",
     "pingpong 128x192x128 stages=4 raster-group=16"},
    {"128x3008x5568 bf16 -> bf16 nt",
     "pingpong 64x64x64 stages=12 raster=m raster-group=1"},
};

std::optional<GemmSchedule> kept_schedule(const GemmProblem &problem,
                                          const DeviceDescription &device) {
  auto kept = find_tuned(device.name, gemm_family(), problem.to_string());
  if (!kept)
    return std::nullopt;
  try {
    return fit(problem, GemmSchedule::parse(kept->schedule), device);
  } catch (const UserError &error) {
    warn_of_tuned(*kept, error.message());
    return std::nullopt;
  }
}

std::optional<GemmSchedule> tuned_schedule(const GemmProblem &problem,
                                           const DeviceDescription &device) {
  if (device.name != DeviceDescription::h200().name)
    return std::nullopt;
  std::string words = problem.to_string();
  const auto *found = std::ranges::find(
      kTuned, words, [](const Tuned &one) { return std::string(one.problem); });
  if (found == std::end(kTuned))
    return std::nullopt;
  return fit(problem, GemmSchedule::parse(found->schedule), device);
}

} // namespace kiln::gemm_kernel

namespace kiln {

// The number is raised whenever a kernel changes so much that other schedules
// may be faster.
std::string_view gemm_family() { return "gemm 6"; }

} // namespace kiln
