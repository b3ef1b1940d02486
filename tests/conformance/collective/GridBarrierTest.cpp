// GridBarrier: what all CTAs wrote is there behind it, again and again.
#include "conformance/Conformance.h"

#include <kiln/run/run.h>

#include <numeric>

using namespace conformance;

class GridBarrierCase : public OnDevice {};
INSTANTIATE_ON_DEVICES(GridBarrierCase);

static constexpr int kCtas = 12, kThreads = 96, kRounds = 3;

/// Each CTA adds 1 to what the one behind it wrote in the round before; TMA
/// brings the last of it.
static Kernel passed_on() {
  KernelBuilder kb("passed_on", {.threads = kThreads});
  Tensor x = kb.tensor("x", i32, {kCtas, kThreads});
  Tensor y = kb.tensor("y", i32, {kCtas, kThreads});
  Tensor kept = kb.workspace("kept", i32, {kRounds, kCtas, kThreads});
  TmaTensor map = kb.tensor_map(kept, {.tile = {1, 1, kThreads}});
  GridBarrier written(kb);
  kb.grid(kCtas);
  SharedTile tile = kb.shared(map.tile());
  Mbarrier full = kb.mbarriers(1)[0];
  one_thread([&] {
    full.init(1);
    fence_mbarrier_init();
  });
  Value cta = block_id(), t = thread_id(), behind = (cta + 1) % kCtas;
  kept(0, cta, t) = x(cta, t);
  written.sync();
  for (int round = 1; round < kRounds; ++round) {
    kept(round, cta, t) = kept(round - 1, behind, t) + 1;
    written.sync();
  }
  one_thread([&] {
    full.arrive_expect_tx(map.tile_bytes());
    tma_load(tile, map, {kRounds - 1, behind, 0}, full);
  });
  full.wait(0);
  y(cta, t) = tile(0, t);
  return compile_checked(kb.module());
}

TEST_P(GridBarrierCase, PassesOn) {
  Kernel kernel = passed_on();
  EXPECT_TRUE(kernel.contract.is_cooperative);
  EXPECT_TRUE(kernel.contract.arguments[2].is_workspace);
  OPEN_OR_SKIP(device);
  std::vector<int> x(kCtas * kThreads), y(x.size(), -1), expected(x.size());
  std::iota(x.begin(), x.end(), 100);
  for (int cta = 0; cta < kCtas; ++cta)
    for (int t = 0; t < kThreads; ++t)
      expected[cta * kThreads + t] =
          x[(cta + kRounds) % kCtas * kThreads + t] + kRounds - 1;
  run(device, kernel, x, y);
  EXPECT_EQ(y, expected);
  // A workspace of the caller's serves launch after launch.
  auto copied = [&](const std::vector<int> &data) {
    Buffer buffer = device.allocate(data.size() * sizeof(int));
    device.copy_in(buffer, data.data(), buffer.bytes());
    return buffer;
  };
  std::vector<LaunchArgument> given = {copied(x), copied(y)};
  given = with_workspaces(device, kernel, given);
  for (int i = 0; i < 3; ++i) {
    device.fill(std::get<Buffer>(given[1]), 0xff);
    EXPECT_TRUE(device.launch(kernel, given).ok());
    device.copy_out(y.data(), std::get<Buffer>(given[1]),
                    y.size() * sizeof(int));
    device.synchronize();
    EXPECT_EQ(y, expected) << i;
  }
}

TEST_P(GridBarrierCase, RefusesMoreThanTheDeviceHolds) {
  KernelBuilder kb("crowd", {.threads = 1024});
  GridBarrier all(kb);
  kb.grid(100000);
  all.sync();
  Kernel kernel = compile_checked(kb.module());
  OPEN_OR_SKIP(device);
  EXPECT_THROW(run(device, kernel), Error);
}
