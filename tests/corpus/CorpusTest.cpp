// Corpus: reductions, locks, clusters, functions, tables and messages, as nvcc
// compiles them, against plain loops.
#include "corpus/RunCorpus.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <numeric>

namespace kiln {

TEST(Corpus, SumsBlocks) {
  constexpr int kCount = 3000, kBlocks = 5;
  RunCorpus run("reductions.ptx", Interleaving::random);
  auto in = randomNumbers<float>(kCount, -1, 1);
  Buffer from = run.buffer(in), to = run.empty<float>(kBlocks);
  run.run("block_sum", {kBlocks, 1, 1}, {256, 1, 1}, 0, from, to, kCount);
  auto sums = run.read<float>(to, kBlocks);
  for (int block = 0; block < kBlocks; ++block) {
    double sum = 0;
    for (int i = 0; i < kCount; ++i)
      if (i / 256 % kBlocks == block)
        sum += in[i];
    EXPECT_NEAR(sums[block], sum, 1e-4);
  }
}

TEST(Corpus, ReducesWarps) {
  RunCorpus run("reductions.ptx");
  auto in = randomNumbers<int>(256, 0, 20);
  Buffer from = run.buffer(in), to = run.empty<int>(48);
  run.run("warp_reduce", {2, 1, 1}, {128, 1, 1}, 0, from, to);
  auto out = run.read<int>(to, 48);
  for (int warp = 0; warp < 8; ++warp) {
    const int *values = &in[warp * 32], *row = &out[warp * 6];
    EXPECT_EQ(row[0], std::accumulate(values, values + 32, 0));
    EXPECT_EQ(row[1], *std::max_element(values, values + 32));
    EXPECT_EQ(row[2], *std::min_element(values, values + 32));
    EXPECT_EQ(row[3], std::accumulate(values, values + 32, 0,
                                      [](int a, int b) { return a | b; }));
    EXPECT_EQ(row[4], std::count(values, values + 32, values[0]));
    EXPECT_EQ(row[5],
              std::count_if(values, values + 32, [](int v) { return v & 1; }));
  }
}

/// The counter is a variable of the module: the second launch needs it as the
/// first has left it.
TEST(Corpus, LastBlockSumsTheGrid) {
  constexpr int kCount = 5000, kBlocks = 7;
  RunCorpus run("reductions.ptx", Interleaving::random);
  auto in = randomNumbers<float>(kCount, -1, 1);
  Buffer from = run.buffer(in), partial = run.empty<float>(kBlocks);
  double sum = std::accumulate(in.begin(), in.end(), 0.0);
  for (int launch = 0; launch < 2; ++launch) {
    Buffer to = run.empty<float>(1);
    run.run("grid_sum", {kBlocks, 1, 1}, {128, 1, 1}, 0, from, partial, to,
            kCount);
    EXPECT_NEAR(run.read<float>(to, 1)[0], sum, 1e-3);
  }
}

TEST(Corpus, LocksOutOtherThreads) {
  RunCorpus run("locks.ptx");
  Buffer count = run.buffer(std::vector<int>{0});
  Buffer order = run.empty<int>(96);
  run.run("spin_lock", {2, 1, 1}, {48, 1, 1}, 0, count, order);
  EXPECT_EQ(run.read<int>(count, 1)[0], 96);
  auto seen = run.read<int>(order, 96);
  std::sort(seen.begin(), seen.end());
  for (int i = 0; i < 96; ++i)
    EXPECT_EQ(seen[i], i);
}

TEST(Corpus, CountsInTheNeighboursMemory) {
  for (Interleaving order : kSimOrders) {
    RunCorpus run("cluster.ptx", order);
    auto in = randomNumbers<int>(2000, 0, 127);
    Buffer from = run.buffer(in), to = run.buffer(std::vector<int>(128, 0));
    run.run("cluster_histogram", {4, 1, 1}, {96, 1, 1}, 0, from, to, 2000);
    auto bins = run.read<int>(to, 128);
    for (int bin = 0; bin < 128; ++bin)
      EXPECT_EQ(bins[bin], std::count(in.begin(), in.end(), bin));
  }
}

TEST(Corpus, LoadsForTwo) {
  for (Interleaving order : kSimOrders) {
    RunCorpus run("cluster.ptx", order);
    auto in = randomNumbers<float>(64 * 32, -1, 1);
    Buffer from = run.buffer(in), to = run.empty<float>(4 * 1024);
    TensorMap map{.type = Type::f32,
                  .address = from.address(),
                  .dims = {32, 64},
                  .strides_bytes = {128},
                  .box = {32, 32},
                  .element_strides = {1, 1}};
    run.run("multicast", {4, 1, 1}, {64, 1, 1}, 0, map, to);
    auto out = run.read<float>(to, 4 * 1024);
    for (int block = 0; block < 4; ++block)
      for (int i = 0; i < 1024; ++i) {
        int row = i / 32, column = i % 32;
        if (block % 2)
          std::swap(row, column);
        ASSERT_EQ(out[block * 1024 + i],
                  in[(block / 2 * 32 + row) * 32 + column]);
      }
  }
}

TEST(Corpus, CallsByName) {
  RunCorpus run("functions.ptx");
  auto in = randomNumbers<int>(128, -1000, 1000);
  Buffer from = run.buffer(in), to = run.empty<int>(128);
  run.run("by_name", {2, 1, 1}, {64, 1, 1}, 0, from, to);
  auto out = run.read<int>(to, 128);
  for (int i = 0; i < 128; ++i) {
    int by = i % 7 + 1;
    EXPECT_EQ(out[i], (in[i] + 10 + by) * (in[i] - by) + by);
  }
}

/// Lanes of one warp call different functions.
TEST(Corpus, CallsByPointer) {
  RunCorpus run("functions.ptx");
  auto a = randomNumbers<int>(64, -100, 100);
  auto b = randomNumbers<int>(64, -100, 100);
  auto which = randomNumbers<int>(64, 0, 3);
  Buffer to = run.empty<int>(64);
  run.run("by_pointer", {1, 1, 1}, {64, 1, 1}, 0, run.buffer(a), run.buffer(b),
          run.buffer(which), to);
  auto out = run.read<int>(to, 64);
  for (int i = 0; i < 64; ++i) {
    int expected[] = {a[i] + b[i], a[i] - b[i], a[i] * b[i],
                      std::max(a[i], b[i])};
    EXPECT_EQ(out[i], expected[which[i]]) << which[i];
  }
}

static int sequence(int n, int &calls) {
  int local[2] = {n, n + 1};
  ++calls;
  if (n < 2)
    return local[n];
  int left = sequence(n - 1, calls);
  return left + sequence(n - 2, calls) + local[n & 1];
}

TEST(Corpus, CallsItself) {
  RunCorpus run("functions.ptx");
  auto in = randomNumbers<int>(64, 0, 9);
  Buffer to = run.empty<int>(128);
  run.run("recursion", {1, 1, 1}, {64, 1, 1}, 0, run.buffer(in), to);
  auto out = run.read<int>(to, 128);
  for (int i = 0; i < 64; ++i) {
    int calls = 0;
    EXPECT_EQ(out[2 * i], sequence(in[i], calls)) << in[i];
    EXPECT_EQ(out[2 * i + 1], calls) << in[i];
  }
}

static int switched(int value, int result) {
  for (int turn = 0; turn < 3; ++turn) {
    auto bits = static_cast<unsigned>(result);
    switch ((value + turn) & 15) {
    case 0:
      result += 17;
      break;
    case 1:
      result = static_cast<int>(bits * 3);
      break;
    case 2:
      result ^= 0x55;
      break;
    case 3:
      result -= value;
      break;
    case 4:
      result = static_cast<int>(bits << 2 | 1);
      break;
    case 5:
      result >>= 1;
      break;
    case 6:
      result = -result;
      break;
    case 7:
      result += value * value;
      break;
    case 8:
      result = std::countl_zero(bits);
      break;
    case 9:
      result = std::popcount(bits);
      break;
    case 10:
      result &= value;
      break;
    default:
      result |= 1;
      break;
    }
  }
  return result;
}

TEST(Corpus, BranchesByTable) {
  RunCorpus run("control.ptx");
  auto in = randomNumbers<int>(256, 0, 1000);
  Buffer to = run.empty<int>(256);
  run.run("switched", {2, 1, 1}, {128, 1, 1}, 0, run.buffer(in), to);
  auto out = run.read<int>(to, 256);
  for (int i = 0; i < 256; ++i)
    EXPECT_EQ(out[i], switched(in[i], i)) << in[i];
}

TEST(Corpus, SortsInLocalMemory) {
  RunCorpus run("control.ptx");
  auto in = randomNumbers<int>(64 * 12, -1000, 1000);
  Buffer to = run.empty<int>(64 * 12);
  run.run("local_sort", {2, 1, 1}, {32, 1, 1}, 0, run.buffer(in), to);
  auto out = run.read<int>(to, 64 * 12);
  for (int row = 0; row < 64; ++row)
    std::sort(in.begin() + row * 12, in.begin() + row * 12 + 12);
  EXPECT_EQ(out, in);
}

TEST(Corpus, CountsInSharedMemory) {
  RunCorpus run("control.ptx", Interleaving::random);
  auto in = randomNumbers<int>(4000, 0, 255);
  std::vector<unsigned char> bytes(in.begin(), in.end());
  Buffer to = run.buffer(std::vector<unsigned>(256, 0));
  run.run("histogram", {3, 1, 1}, {128, 1, 1}, 0, run.buffer(bytes), to, 4000);
  auto out = run.read<unsigned>(to, 256);
  for (int bin = 0; bin < 256; ++bin)
    EXPECT_EQ(out[bin], std::count(in.begin(), in.end(), bin));
}

TEST(Corpus, Prints) {
  RunCorpus run("messages.ptx");
  run.run("greet", {1, 1, 1}, {32, 1, 1}, 0, 3);
  EXPECT_EQ(run.printed, "thread 0 of 32:  0.00 even 0 a %\n"
                         "thread 1 of 32:  0.25 odd -1000000000000 b %\n"
                         "thread 2 of 32:  0.50 even -2000000000000 c %\n");
}

TEST(Corpus, Asserts) {
  RunCorpus run("messages.ptx");
  std::vector<int> in(32, 1);
  run.run("check", {1, 1, 1}, {32, 1, 1}, 0, run.buffer(in));
  in[7] = -1;
  LaunchResult result =
      run.launch("check", {1, 1, 1}, {32, 1, 1}, 0, run.buffer(in));
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].id, "assert");
  // As CUDA prints it.
  EXPECT_NE(result.findings[0].message.find(
                ": block: [0,0,0], thread: [7,0,0] Assertion "
                "`in[threadIdx.x] >= 0` failed."),
            std::string::npos)
      << result.findings[0].message;
  EXPECT_NE(result.findings[0].message.find("thread 7 "), std::string::npos);
}

/// A CTA may end in the very turn in which it reaches its limit, and then it
/// has kept it.
TEST(Corpus, EveryLimitOfInstructionsIsKeptOrTold) {
  std::vector<int> numbers(256, 1);
  int kept = 0, told = 0;
  auto look = [&](const LaunchResult &result) {
    ++(result.is_finished ? kept : told);
    if (result.is_finished)
      return;
    ASSERT_FALSE(result.findings.empty());
    EXPECT_EQ(result.findings.back().id, "instruction-limit");
  };
  for (Interleaving order : kSimOrders)
    for (std::uint64_t limit = 1; limit <= 400; limit += limit < 40 ? 1 : 37) {
      RunCorpus greet("messages.ptx", order, limit);
      look(greet.launch("greet", {1, 1, 1}, {32, 1, 1}, 0, 3));
      RunCorpus warps("reductions.ptx", order, limit);
      Buffer in = warps.buffer(numbers), out = warps.empty<int>(48);
      look(warps.launch("warp_reduce", {2, 1, 1}, {128, 1, 1}, 0, in, out));
      RunCorpus locks("locks.ptx", order, limit);
      Buffer count = locks.buffer(std::vector<int>{0});
      look(locks.launch("spin_lock", {2, 1, 1}, {48, 1, 1}, 0, count,
                        locks.empty<int>(96)));
      RunCorpus clusters("cluster.ptx", order, limit);
      in = clusters.buffer(numbers);
      out = clusters.buffer(std::vector<int>(128, 0));
      look(clusters.launch("cluster_histogram", {4, 1, 1}, {96, 1, 1}, 0, in,
                           out, 256));
    }
  EXPECT_GT(kept, 10);
  EXPECT_GT(told, 10);
}

} // namespace kiln
