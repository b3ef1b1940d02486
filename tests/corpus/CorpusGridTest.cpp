// CorpusGrid: threads that leave early, blocks that wait for all others, and
// memory that kernels allocate, as nvcc compiles them.
#include "corpus/RunCorpus.h"

#include <numeric>

namespace kiln {

TEST(CorpusGrid, ThreadsThatLeaveAreNotWaitedFor) {
  for (Interleaving order : kSimOrders) {
    RunCorpus run("grid.ptx", order);
    auto in = randomNumbers<int>(300, -1000, 1000);
    Buffer from = run.buffer(in), to = run.empty<int>(300);
    run.run("reversed", {1, 1, 1}, {512, 1, 1}, 0, to, from, 300);
    auto out = run.read<int>(to, 300);
    EXPECT_TRUE(std::equal(out.begin(), out.end(), in.rbegin()));
  }
}

TEST(CorpusGrid, BlocksOfACooperativeLaunchWaitForEachOther) {
  for (Interleaving order : kSimOrders) {
    RunCorpus run("grid.ptx", order);
    run.isCooperative = true;
    Buffer numbers = run.empty<int>(20), sums = run.empty<int>(20);
    run.run("grid_sums", {20, 1, 1}, {64, 1, 1}, 0, numbers, sums);
    EXPECT_EQ(run.read<int>(sums, 20), std::vector<int>(20, 210));
  }
}

TEST(CorpusGrid, WithoutACooperativeLaunchGridSyncTraps) {
  RunCorpus run("grid.ptx");
  Buffer numbers = run.empty<int>(2), sums = run.empty<int>(2);
  LaunchResult result =
      run.launch("grid_sums", {2, 1, 1}, {64, 1, 1}, 0, numbers, sums);
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].id, "trap");
}

TEST(CorpusGrid, ACounterIsSetBackByTheLastBlock) {
  for (Interleaving order : kSimOrders) {
    RunCorpus run("grid.ptx", order);
    Buffer counter = run.buffer(std::vector<unsigned>{0});
    for (int launch = 0; launch < 2; ++launch) {
      Buffer last = run.buffer(std::vector<int>{-1});
      run.run("counted", {9, 1, 1}, {32, 1, 1}, 0, counter, last);
      EXPECT_EQ(run.read<unsigned>(counter, 1)[0], 0u);
      EXPECT_GE(run.read<int>(last, 1)[0], 0);
    }
  }
}

TEST(CorpusGrid, KernelsAllocateMemory) {
  RunCorpus run("grid.ptx");
  Buffer to = run.empty<int>(64);
  run.run("lists", {1, 1, 1}, {64, 1, 1}, 0, to, 9);
  auto sums = run.read<int>(to, 64);
  for (int i = 0; i < 64; ++i)
    EXPECT_EQ(sums[i], 36 * i);
}

TEST(CorpusGrid, MemoryThatWasGivenBackIsNotUsed) {
  RunCorpus run("grid.ptx");
  Buffer to = run.empty<int>(1);
  LaunchResult result =
      run.launch("used_after_free", {1, 1, 1}, {1, 1, 1}, 0, to);
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].id, "out-of-bounds");
  EXPECT_NE(result.findings[0].message.find(
                "which is in the heap and in no block that malloc gave and "
                "that is in use"),
            std::string::npos)
      << result.findings[0].message;
  result = run.launch("freed_twice", {1, 1, 1}, {1, 1, 1}, 0, to);
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].id, "device-free");
  EXPECT_NE(result.findings[0].message.find(
                "is freed, which malloc did not give or which was freed "
                "before"),
            std::string::npos)
      << result.findings[0].message;
}

} // namespace kiln
