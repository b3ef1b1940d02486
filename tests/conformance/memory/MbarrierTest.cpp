// Mbarrier: arrivals, phases and waits inside one CTA.
#include "conformance/Conformance.h"

#include <kiln/run/run.h>

#include <numeric>

using namespace conformance;

class MbarrierCases : public OnDevice {};
INSTANTIATE_ON_DEVICES(MbarrierCases);

TEST_P(MbarrierCases, CountedArrivals) {
  // 64 threads arrive with 2 each; only then is the phase over.
  KernelBuilder kb("counted", {.threads = 64});
  Tensor out = kb.tensor("out", i32, {64});
  SharedTile tile = kb.shared({i32, 1, 64});
  Mbarrier barrier = kb.mbarriers(1)[0];
  one_thread([&] {
    barrier.init(128);
    fence_mbarrier_init();
  });
  sync_threads();
  tile(0, thread_id()) = thread_id();
  barrier.arrive(2);
  barrier.wait(0);
  out(thread_id()) = tile(0, 63 - thread_id());
  Kernel kernel = compile_checked(kb.module());
  EXPECT_EQ(count(kernel.ptx, "mbarrier.arrive"), 1);
  OPEN_OR_SKIP(device);
  std::vector<int> found(64, -1), expected;
  for (int i = 0; i < 64; ++i)
    expected.push_back(63 - i);
  run(device, kernel, found);
  EXPECT_EQ(found, expected);
}

TEST_P(MbarrierCases, TestAndTryWaitSeeThePhase) {
  // Before anyone has arrived: phase 0 is open, the one before it is over.
  KernelBuilder kb("polling", {.threads = 32});
  Tensor out = kb.tensor("out", i32, {6});
  Mbarrier barrier = kb.mbarriers(1)[0];
  one_thread([&] {
    barrier.init(1);
    out(0) = cast(barrier.test_wait(0), i32);
    out(1) = cast(barrier.test_wait(1), i32);
    out(2) = cast(barrier.try_wait(0, 20), i32);
    barrier.arrive();
    out(3) = cast(barrier.test_wait(0), i32);
    out(4) = cast(barrier.test_wait(1, Scope::cluster), i32);
    Var turns(i32, 0);
    while_([&] { return !barrier.try_wait(0, 1000, Scope::cluster); },
           [&] { turns = turns + 1; });
    out(5) = turns;
  });
  Kernel kernel = compile_checked(kb.module());
  EXPECT_EQ(count(kernel.ptx, "mbarrier.try_wait.parity"), 2);
  EXPECT_EQ(count(kernel.ptx, "mbarrier.test_wait.parity"), 4);
  OPEN_OR_SKIP(device);
  std::vector<int> found(6, -1);
  run(device, kernel, found);
  EXPECT_EQ(found, (std::vector<int>{0, 1, 0, 1, 0, 0}));
}

TEST_P(MbarrierCases, InvalidatedAndInitialisedAgain) {
  // A phase later the barrier counts something else.
  KernelBuilder kb("again", {.threads = 32});
  Tensor out = kb.tensor("out", i32, {2});
  Mbarrier barrier = kb.mbarriers(1)[0];
  one_thread([&] {
    barrier.init(1);
    barrier.arrive();
    barrier.wait(0);
    barrier.inval();
    barrier.init(2);
    barrier.arrive();
    out(0) = cast(barrier.test_wait(0), i32);
    barrier.arrive();
    out(1) = cast(barrier.test_wait(0), i32);
  });
  Kernel kernel = compile_checked(kb.module());
  EXPECT_EQ(count(kernel.ptx, "mbarrier.inval"), 1);
  OPEN_OR_SKIP(device);
  std::vector<int> found(2, -1);
  run(device, kernel, found);
  EXPECT_EQ(found, (std::vector<int>{0, 1}));
}

TEST_P(MbarrierCases, BytesAnnouncedWithoutAnArrival) {
  // Two loads, each announced on its own; the one arrival comes last.
  KernelBuilder kb("bytes", {.threads = 32});
  TmaTensor in = kb.tensor_map("in", i32, {2, 32}, {.tile = {1, 32}});
  Tensor out = kb.tensor("out", i32, {2, 32});
  SharedTileArray tiles = kb.shared_array(in.tile(), 2);
  Mbarrier full = kb.mbarriers(1)[0];
  one_thread([&] {
    full.init(1);
    fence_mbarrier_init();
    for (int i : {0, 1}) {
      full.expect_tx(in.tile_bytes());
      tma_load(tiles[i], in, {i, 0}, full);
    }
    full.arrive();
  });
  sync_threads();
  full.wait(0);
  for (int i : {0, 1})
    out(i, thread_id()) = tiles[i](0, thread_id());
  Kernel kernel = compile_checked(kb.module());
  OPEN_OR_SKIP(device);
  std::vector<int> data(64), found(64, -1);
  std::iota(data.begin(), data.end(), 1);
  run(device, kernel, data, found);
  EXPECT_EQ(found, data);
}
