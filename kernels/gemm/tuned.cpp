// tuned: the database of whoever tuned here, and the table that ships, from
// bench/results/h200_schedules.json.
#include "tuned.h"

#include <kiln/error.h>
#include <kiln/tuning.h>

#include <algorithm>

namespace kiln::gemm_kernel {

namespace {
struct Tuned {
  const char *problem, *schedule;
};
} // namespace

/// Of the H200.
static constexpr Tuned kTuned[] = {
    {"128x2112x7168 bf16 -> bf16 tn",
     "warp-specialized 64x64x64 stages=12 consumers=1 split-k=2"},
    {"16x5376x21504 bf16 -> bf16 tn",
     "warp-specialized 64x192x128 stages=3 consumers=1 split-k=4"},
    {"1x28672x4096 bf16 -> bf16 tn",
     "warp-specialized 64x8x128 stages=6 consumers=1 occupancy=2 swap=on"},
    {"1x6144x4096 bf16 -> bf16 tn",
     "warp-specialized 64x8x128 stages=6 consumers=1 occupancy=2 swap=on"},
    {"64x2112x7168 bf16 -> bf16 tn",
     "warp-specialized 64x64x64 stages=12 consumers=1 split-k=2 swap=on"},
    {"8192x8192x8192 bf16 -> bf16 tn",
     "cooperative 128x256x64 stages=4 cluster=2x1"},
    {"64x7168x16384 bf16 -> bf16 tn",
     "warp-specialized 64x112x64 stages=10 consumers=1 split-k=2"},
    {"512x16x500000 bf16 -> bf16 tn",
     "warp-specialized 64x16x128 stages=11 consumers=1 split-k=8"},
    {"1024x8x500000 bf16 -> bf16 tn",
     "warp-specialized 64x8x64 stages=12 consumers=1 split-k=6"},
    {"256x256x16384 bf16 -> bf16 tn",
     "warp-specialized 64x88x128 stages=5 consumers=1 split-k=8 swap=on"},
    {"128x1280x8192 bf16 -> bf16 tn",
     "warp-specialized 64x96x128 stages=5 consumers=1 split-k=4"},
    {"4096x256x7168 bf16 -> bf16 tn",
     "warp-specialized 64x256x64 stages=5 consumers=1 split-k=2"},
    {"128x3008x5568 bf16 -> bf16 nt", "pingpong 64x64x64 stages=12"},
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
std::string_view gemm_family() { return "gemm 3"; }

} // namespace kiln
