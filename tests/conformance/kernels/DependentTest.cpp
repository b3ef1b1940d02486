// Dependent: products one behind the other, of which each sets itself up while
// the one ahead ends. The simulator lets them overlap as far as they allow it.
#include "conformance/Conformance.h"

#include <kiln/check/explore.h>
#include <kiln/check/sim.h>
#include <kiln/kernels/gemm.h>

#include <cstring>

using namespace conformance;

namespace {
constexpr int kSize = 128;
constexpr std::size_t kBytes = std::size_t(2) * kSize * kSize;

/// Three launches of one kernel: each multiplies what the one ahead has left.
class Row {
public:
  explicit Row(const GemmSchedule &schedule, bool waits = true)
      : kernel_(compile_checked(build_gemm(
            {.m = kSize, .n = kSize, .k = kSize, .out = f16}, schedule))),
        device_(open_sim()) {
    if (!waits)
      kernel_.ptx.erase(kernel_.ptx.find("griddepcontrol.wait;"),
                        std::strlen("griddepcontrol.wait;"));
    for (unsigned i = 0; i < 5; ++i) {
      buffers_.push_back(device_->allocate(kBytes));
      auto data = random_elements(f16, std::size_t(kSize) * kSize, i);
      device_->copy_in(buffers_[i], data.data(), kBytes);
    }
  }

  std::vector<LaunchDescription> launches(bool areDependent) {
    std::vector<LaunchDescription> all;
    for (std::size_t i = 0; i < 3; ++i) {
      std::vector<LaunchArgument> arguments = {buffers_[i], buffers_[4],
                                               buffers_[i + 1]};
      // They share their workspaces.
      if (full_.empty())
        full_ = with_workspaces(*device_, kernel_, arguments);
      arguments.insert(arguments.end(), full_.begin() + 3, full_.end());
      all.push_back(device_->describe(kernel_, arguments));
      all.back().dependent = areDependent && i > 0;
    }
    return all;
  }
  std::vector<std::uint8_t> result() {
    std::vector<std::uint8_t> bytes(kBytes);
    device_->copy_out(bytes.data(), buffers_[3], kBytes);
    return bytes;
  }
  Device &device() { return *device_; }

private:
  Kernel kernel_;
  std::shared_ptr<Device> device_;
  std::vector<Buffer> buffers_;
  std::vector<LaunchArgument> full_;
};
} // namespace

TEST(Dependent, ProductsWaitForWhatTheyRead) {
  const GemmSchedule schedules[] = {
      {.kind = GemmKind::multistage, .tile_m = 64, .tile_n = 64},
      {.kind = GemmKind::warp_specialized, .tile_m = 64, .tile_n = 64},
      {.kind = GemmKind::cooperative, .tile_m = 128, .tile_n = 64},
      {.kind = GemmKind::warp_specialized,
       .tile_m = 64,
       .tile_n = 64,
       .split_k = 2,
       .is_split_by_grid = true},
  };
  for (const GemmSchedule &schedule : schedules) {
    Row row(schedule);
    explore(row.device(), row.launches(false), {.interleavings = {.count = 1}});
    auto wanted = row.result();
    Exploration seen =
        explore(row.device(), row.launches(true),
                {.interleavings = {.count = 6}}, [&](const ExploredRun &run) {
                  EXPECT_EQ(row.result(), wanted)
                      << run.interleaving.to_string();
                  return true;
                });
    EXPECT_EQ(seen.runs.size(), 6u);
    for (const ExploredRun &run : seen.runs)
      for (const LaunchResult &result : run.launches)
        EXPECT_TRUE(result.findings.empty())
            << run.interleaving.to_string() << ": " << result.to_string();
  }
}

TEST(Dependent, AProductThatDoesNotWaitIsFound) {
  Row row({.kind = GemmKind::warp_specialized, .tile_m = 64, .tile_n = 64},
          /*waits=*/false);
  Exploration seen = explore(row.device(), row.launches(true),
                             {.interleavings = {.count = 3}});
  for (const ExploredRun &run : seen.runs) {
    EXPECT_TRUE(run.launches[0].findings.empty());
    for (std::size_t i = 1; i < run.launches.size(); ++i) {
      ASSERT_FALSE(run.launches[i].findings.empty())
          << run.interleaving.to_string();
      for (const Finding &finding : run.launches[i].findings)
        EXPECT_EQ(finding.id, "pdl-wait") << finding.to_string();
    }
  }
}
