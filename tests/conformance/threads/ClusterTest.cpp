// Cluster: CTAs that see each other, by barrier, by element and by multicast.
#include "conformance/Conformance.h"

#include <kiln/run/run.h>

#include <numeric>

using namespace conformance;

class ClusterCases : public OnDevice {};
INSTANTIATE_ON_DEVICES(ClusterCases);

TEST_P(ClusterCases, Ids) {
  KernelBuilder kb("ids", {.threads = 32, .cluster = {2, 2}});
  Tensor out = kb.tensor("out", i32, {2, 4, 6});
  kb.grid(4, 2);
  one_thread([&] {
    Value x = block_id(Axis::x), y = block_id(Axis::y);
    out(y, x, 0) = cluster_id(Axis::x);
    out(y, x, 1) = cluster_id(Axis::y) + cluster_id(Axis::z);
    out(y, x, 2) = cta_in_cluster(Axis::x);
    out(y, x, 3) = cta_in_cluster(Axis::y) + cta_in_cluster(Axis::z);
    out(y, x, 4) = cluster_rank();
    out(y, x, 5) = cluster_size();
  });
  Kernel kernel = compile_checked(kb.module());
  EXPECT_EQ(kernel.contract.cluster, (std::array<int, 3>{2, 2, 1}));
  EXPECT_EQ(count(kernel.ptx, ".reqnctapercluster 2, 2"), 1);
  OPEN_OR_SKIP(device);
  std::vector<int> found(2 * 4 * 6, -1), expected;
  for (int y = 0; y < 2; ++y)
    for (int x = 0; x < 4; ++x)
      for (int value : {x / 2, y / 2, x % 2, y % 2, y % 2 * 2 + x % 2, 4})
        expected.push_back(value);
  run(device, kernel, found);
  EXPECT_EQ(found, expected);
}

TEST_P(ClusterCases, RemoteTilesOfEverySwizzle) {
  // Each CTA fills its own tile, and half of its neighbour's other one.
  for (Swizzle swizzle :
       {Swizzle::none, Swizzle::b32, Swizzle::b64, Swizzle::b128}) {
    TileLayout layout{i32, 8, 32, swizzle};
    KernelBuilder kb("remote", {.threads = 256, .cluster = {2}});
    Tensor read = kb.tensor("read", i32, {2, 256});
    Tensor written = kb.tensor("written", i32, {2, 256});
    kb.grid(2);
    SharedTile mine = kb.shared(layout), given = kb.shared(layout);
    Value rank = cluster_rank(), i = thread_id();
    Value row = i / 32, column = i % 32;
    mine(row, column) = rank * 1000 + i;
    cluster_sync();
    RemoteTile other = map_shared(mine, rank ^ 1);
    map_shared(given, rank ^ 1)(row, column) = rank * 1000 - i;
    read(rank, i) = other(row, column);
    cluster_arrive();
    cluster_wait();
    written(rank, i) = given(row, column);
    Kernel kernel = compile_checked(kb.module());
    EXPECT_GE(count(kernel.ptx, "ld.shared::cluster"), 1);
    EXPECT_GE(count(kernel.ptx, "st.shared::cluster"), 1);
    Device *device = conformance::open(GetParam()).device.get();
    if (!device)
      continue;
    std::vector<int> found(512, -1), back(512, -1), expected, expected_back;
    for (int k = 0; k < 512; ++k) {
      expected.push_back((1 - k / 256) * 1000 + k % 256);
      expected_back.push_back((1 - k / 256) * 1000 - k % 256);
    }
    run(*device, kernel, found, back);
    EXPECT_EQ(found, expected) << static_cast<int>(swizzle);
    EXPECT_EQ(back, expected_back) << static_cast<int>(swizzle);
  }
  SKIP_WITHOUT_DEVICE();
}

TEST_P(ClusterCases, RelaxedArrivalHoldsBackTheWaiter) {
  // Without data behind it: nobody leaves before all have come.
  KernelBuilder kb("relaxed", {.threads = 64, .cluster = {4}});
  Tensor out = kb.tensor("out", i32, {8});
  kb.grid(8);
  cluster_arrive_relaxed();
  cluster_wait();
  one_thread([&] { out(block_id()) = cluster_rank(); });
  Kernel kernel = compile_checked(kb.module());
  EXPECT_EQ(count(kernel.ptx, "barrier.cluster.arrive.relaxed.aligned"), 1);
  OPEN_OR_SKIP(device);
  std::vector<int> found(8, -1);
  run(device, kernel, found);
  EXPECT_EQ(found, (std::vector<int>{0, 1, 2, 3, 0, 1, 2, 3}));
}

TEST_P(ClusterCases, RemoteArrivals) {
  // Everyone arrives at everyone; a CTA goes on when both have.
  KernelBuilder kb("arrive", {.threads = 32, .cluster = {2}});
  Tensor out = kb.tensor("out", i32, {2, 32});
  kb.grid(2);
  SharedTile tile = kb.shared({i32, 1, 32});
  Mbarrier barrier = kb.mbarriers(1)[0];
  one_thread([&] {
    barrier.init(64 + 3);
    fence_mbarrier_init();
  });
  cluster_sync();
  Value rank = cluster_rank();
  map_shared(tile, rank ^ 1)(0, thread_id()) = rank * 100 + thread_id();
  for (int to : {0, 1})
    barrier.remote(to).arrive();
  predicated(thread_id() == 0, [&] { barrier.remote(rank ^ 1).arrive(3); });
  barrier.wait(0, Scope::cluster);
  out(rank, thread_id()) = tile(0, thread_id());
  cluster_sync();
  Kernel kernel = compile_checked(kb.module());
  EXPECT_EQ(
      count(kernel.ptx, "mbarrier.arrive.release.cluster.shared::cluster"), 3);
  EXPECT_EQ(count(kernel.ptx, "try_wait.parity.acquire.cluster"), 1);
  OPEN_OR_SKIP(device);
  std::vector<int> found(64, -1), expected;
  for (int i = 0; i < 64; ++i)
    expected.push_back((1 - i / 32) * 100 + i % 32);
  run(device, kernel, found);
  EXPECT_EQ(found, expected);
}

TEST_P(ClusterCases, MulticastReachesEveryCta) {
  // CTA 0 loads for both; each waits for its own bytes. The swizzle makes two
  // boxes of it.
  KernelBuilder kb("multicast", {.threads = 128, .cluster = {2}});
  TmaTensor in = kb.tensor_map("in", i32, {16, 64},
                               {.tile = {8, 64}, .swizzle = Swizzle::b128});
  Tensor out = kb.tensor("out", i32, {2, 8, 64});
  kb.grid(2);
  SharedTile tile = kb.shared(in.tile());
  Mbarrier full = kb.mbarriers(1)[0];
  Value rank = cluster_rank();
  one_thread([&] {
    full.init(1);
    fence_mbarrier_init();
    full.arrive_expect_tx(in.tile_bytes());
  });
  cluster_sync(); // both have announced their bytes
  one_thread([&] {
    if_(rank == 0, [&] { tma_load_multicast(tile, in, {4, 0}, full, 3); });
  });
  full.wait(0);
  for_range(thread_id(), 512, 128,
            [&](Value i) { out(rank, i / 64, i % 64) = tile(i / 64, i % 64); });
  cluster_sync();
  Kernel kernel = compile_checked(kb.module());
  EXPECT_EQ(count(kernel.ptx, ".multicast::cluster"), 2);
  OPEN_OR_SKIP(device);
  std::vector<int> data(16 * 64), found(2 * 512, -1), expected;
  std::iota(data.begin(), data.end(), 1);
  for (int copy : {0, 1})
    expected.insert(expected.begin() + copy * 512, data.begin() + 4 * 64,
                    data.begin() + 12 * 64);
  run(device, kernel, data, found);
  EXPECT_EQ(found, expected);
}

TEST_P(ClusterCases, RemoteBarrierAnnouncesBytes) {
  // CTA 1 announces the bytes of a load that CTA 0 issues and waits for.
  KernelBuilder kb("announce", {.threads = 32, .cluster = {2}});
  TmaTensor in = kb.tensor_map("in", i32, {1, 32}, {.tile = {1, 32}});
  Tensor out = kb.tensor("out", i32, {32});
  kb.grid(2);
  SharedTile tile = kb.shared(in.tile());
  Mbarrier full = kb.mbarriers(1)[0];
  Value rank = cluster_rank();
  one_thread([&] {
    full.init(2);
    fence_mbarrier_init();
  });
  cluster_sync();
  if_(rank == 1, [&] {
    one_thread([&] {
      full.remote(0).expect_tx(64);
      full.remote(0).arrive_expect_tx(64);
    });
  });
  if_(rank == 0, [&] {
    one_thread([&] {
      tma_load(tile, in, {0, 0}, full);
      full.arrive();
    });
    full.wait(0);
    out(thread_id()) = tile(0, thread_id());
  });
  cluster_sync();
  Kernel kernel = compile_checked(kb.module());
  OPEN_OR_SKIP(device);
  std::vector<int> data(32), found(32, -1);
  std::iota(data.begin(), data.end(), 7);
  run(device, kernel, data, found);
  EXPECT_EQ(found, data);
}

TEST_P(ClusterCases, DependentLaunchWordsChangeNothingAlone) {
  KernelBuilder kb("dependent", {.threads = 32});
  Tensor out = kb.tensor("out", i32, {32});
  wait_for_dependencies();
  out(thread_id()) = thread_id();
  launch_dependents();
  Kernel kernel = compile_checked(kb.module());
  EXPECT_EQ(count(kernel.ptx, "griddepcontrol.wait;"), 1);
  EXPECT_EQ(count(kernel.ptx, "griddepcontrol.launch_dependents;"), 1);
  OPEN_OR_SKIP(device);
  std::vector<int> found(32, -1), expected(32);
  std::iota(expected.begin(), expected.end(), 0);
  run(device, kernel, found);
  EXPECT_EQ(found, expected);
}
