// Threads: ids, elections, named barriers, roles, mbarriers between them.
#include "conformance/Conformance.h"

#include <kiln/run/run.h>

#include <numeric>

using namespace conformance;

class Threads : public OnDevice {};
INSTANTIATE_ON_DEVICES(Threads);

TEST_P(Threads, Ids) {
  KernelBuilder kb("ids", {.threads = 256});
  Tensor out = kb.tensor("out", i32, {2, 3, 256, 7});
  kb.grid(3, 2);
  Value t = thread_id(), x = block_id(), y = block_id(Axis::y);
  Value ids[] = {warp_id(),   warpgroup_id(),     lane_id(),
                 grid_size(), grid_size(Axis::y), warpgroup_thread_id(),
                 x + y * 10};
  for (int k = 0; k < 7; ++k)
    out.at({y, x, t, k}) = ids[k];
  Kernel kernel = compile_checked(kb.module());
  OPEN_OR_SKIP(device);
  std::vector<int> found(2 * 3 * 256 * 7, -1), expected;
  for (int y = 0; y < 2; ++y)
    for (int x = 0; x < 3; ++x)
      for (int t = 0; t < 256; ++t)
        for (int id : {t / 32, t / 128, t % 32, 3, 2, t % 128, x + y * 10})
          expected.push_back(id);
  run(device, kernel, found);
  EXPECT_EQ(found, expected);
}

TEST_P(Threads, ElectAndOneThread) {
  KernelBuilder kb("elections", {.threads = 256});
  Tensor elected = kb.tensor("elected", i32, {256});
  Tensor alone = kb.tensor("alone", i32, {2, 256});
  Value t = thread_id();
  elected(t) = cast(elect(), i32);
  one_thread([&] { alone(0, t) = 1; });
  warpgroup(1,
            [&] { one_thread([&] { one_thread([&] { alone(1, t) = 1; }); }); });
  Kernel kernel = compile_checked(kb.module());
  OPEN_OR_SKIP(device);
  std::vector<int> elected_data(256, -1), alone_data(512, 0);
  run(device, kernel, elected_data, alone_data);
  auto sum = [](auto first, int count) {
    return std::accumulate(first, first + count, 0);
  };
  for (int warp = 0; warp < 8; ++warp)
    EXPECT_EQ(sum(elected_data.begin() + warp * 32, 32), 1) << warp;
  EXPECT_EQ(sum(alone_data.begin(), 32), 1) << "of the first warp";
  EXPECT_EQ(sum(alone_data.begin(), 256), 1);
  EXPECT_EQ(sum(alone_data.begin() + 256 + 128, 32), 1) << "of the role";
  EXPECT_EQ(sum(alone_data.begin() + 256, 256), 1);
}

TEST_P(Threads, NamedBarriersOrderTheirWarps) {
  // Each pair of warps turns its half round, as often as its number says; a
  // barrier of the whole CTA would wait forever.
  KernelBuilder kb("named", {.threads = 128});
  Tensor out = kb.tensor("out", i32, {128});
  SharedTile tile = kb.shared({.type = i32, .rows = 2, .columns = 64});
  Value t = thread_id(), half = warp_id() / 2, mine = t % 64;
  NamedBarrierArray barriers = kb.named_barriers(3, 64);
  auto turn = [&](const NamedBarrier &barrier, int rounds) {
    tile(half, mine) = t;
    barrier.sync();
    for_range(0, rounds, [&](Value) {
      Value seen = tile(half, 63 - mine);
      barrier.sync();
      tile(half, mine) = seen + 1;
      barrier.sync();
    });
    out(t) = tile(half, mine);
  };
  // One of them is chosen while the kernel is built, the other at run time.
  if_(
      half == 0, [&] { turn(barriers[0], 3); },
      [&] { turn(barriers[half + 1], 4); });
  Kernel kernel = compile_checked(kb.module());
  OPEN_OR_SKIP(device);
  std::vector<int> found(128, -1), expected;
  for (int t = 0; t < 64; ++t)
    expected.push_back(63 - t + 3);
  for (int t = 64; t < 128; ++t)
    expected.push_back(t + 4);
  run(device, kernel, found);
  EXPECT_EQ(found, expected);
}

TEST_P(Threads, RolesWithRegistersMeetAtMbarriers) {
  // The producer writes a slot, the consumer reads it, for several phases.
  const int rounds = 5;
  KernelBuilder kb("roles", {.warpgroups = 2});
  Tensor out = kb.tensor("out", i32, {rounds, 128});
  SharedTile tile = kb.shared({.type = i32, .rows = 1, .columns = 128});
  MbarrierArray barriers = kb.mbarriers(2);
  Mbarrier full = barriers[0], empty = barriers[1];
  one_thread([&] {
    full.init(128);
    empty.init(128);
    fence_mbarrier_init();
  });
  sync_threads();
  Value t = warpgroup_thread_id();
  warpgroup(0, {.registers = 232}, [&] {
    for_range(0, rounds, [&](Value i) {
      full.wait(i % 2);
      out(i, t) = tile(0, 127 - t);
      empty.arrive();
    });
  });
  warpgroup(1, {.registers = 40}, [&] {
    for_range(0, rounds, [&](Value i) {
      empty.wait((i + 1) % 2);
      tile(0, t) = t * 10 + i;
      full.arrive();
    });
  });
  Kernel kernel = compile_checked(kb.module());
  EXPECT_EQ(count(kernel.ptx, "setmaxnreg.inc.sync.aligned.u32"), 1);
  EXPECT_EQ(count(kernel.ptx, "setmaxnreg.dec.sync.aligned.u32"), 1);
  OPEN_OR_SKIP(device);
  std::vector<int> found(rounds * 128, -1), expected;
  for (int i = 0; i < rounds; ++i)
    for (int t = 0; t < 128; ++t)
      expected.push_back((127 - t) * 10 + i);
  run(device, kernel, found);
  EXPECT_EQ(found, expected);
}

TEST_P(Threads, PrintOfEveryType) {
  KernelBuilder kb("printing", {.threads = 1});
  Value t = thread_id();
  print("100% of {} types: {} {} {} {} {} {} {}",
        {t, cast(t, i8), cast(t, u16), cast(t, i64), cast(t, Type::index),
         cast(t, f16), cast(t, f64), t == 0});
  print("nothing to add");
  Kernel kernel = compile_checked(kb.module());
  EXPECT_EQ(count(kernel.ptx, "vprintf, "), 2);
  OPEN_OR_SKIP(device);
  EXPECT_TRUE(try_run(device, kernel).ok());
}
