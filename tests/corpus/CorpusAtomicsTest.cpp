// CorpusAtomics: histograms, tickets and compare-and-swap of many threads, as
// nvcc compiles them, against plain loops.
#include "corpus/RunCorpus.h"

#include <algorithm>

namespace kiln {

static std::vector<unsigned> countBytes(const std::vector<unsigned char> &in) {
  std::vector<unsigned> bins(256);
  for (unsigned char byte : in)
    ++bins[byte];
  return bins;
}

static std::vector<unsigned char> randomBytes(std::size_t count) {
  auto in = randomNumbers<int>(count, 0, 255);
  return {in.begin(), in.end()};
}

/// All warps of a CTA write each bin.
TEST(CorpusAtomics, AFullCtaCounts) {
  RunCorpus run("control.ptx", Interleaving::random);
  std::vector<unsigned char> in = randomBytes(50000);
  Buffer to = run.buffer(std::vector<unsigned>(256, 0));
  run.run("histogram", {1, 1, 1}, {1024, 1, 1}, 0, run.buffer(in), to, 50000);
  EXPECT_EQ(run.read<unsigned>(to, 256), countBytes(in));
}

TEST(CorpusAtomics, TheLastBlockHandsTheCountsOn) {
  RunCorpus run("atomics.ptx", Interleaving::random);
  std::vector<unsigned char> in = randomBytes(20000);
  Buffer sums = run.buffer(std::vector<unsigned>(256, 0));
  Buffer to = run.empty<unsigned>(256);
  run.run("grid_histogram", {3, 1, 1}, {512, 1, 1}, 0, run.buffer(in), sums, to,
          20000);
  EXPECT_EQ(run.read<unsigned>(to, 256), countBytes(in));
}

TEST(CorpusAtomics, TicketsGivePlaces) {
  constexpr int kCount = 5000, kLimit = 40;
  RunCorpus run("atomics.ptx", Interleaving::random);
  auto in = randomNumbers<int>(kCount, 0, 99);
  Buffer to = run.empty<int>(kCount);
  Buffer total = run.buffer(std::vector<unsigned>{0});
  run.run("compact", {3, 1, 1}, {256, 1, 1}, 0, run.buffer(in), to, total,
          kCount, kLimit);
  std::erase_if(in, [](int value) { return value >= kLimit; });
  ASSERT_EQ(run.read<unsigned>(total, 1)[0], in.size());
  auto out = run.read<int>(to, in.size());
  std::sort(in.begin(), in.end());
  std::sort(out.begin(), out.end());
  EXPECT_EQ(out, in);
}

TEST(CorpusAtomics, TheLargestBySwapping) {
  RunCorpus run("atomics.ptx", Interleaving::random);
  auto in = randomNumbers<float>(4000, -1, 1);
  Buffer to = run.empty<float>(2);
  run.run("float_max", {2, 1, 1}, {256, 1, 1}, 0, run.buffer(in), to, 4000);
  auto out = run.read<float>(to, 2);
  EXPECT_EQ(std::max(out[0], out[1]), *std::max_element(in.begin(), in.end()));
}

TEST(CorpusAtomics, CountsThatAreReadInEveryRound) {
  constexpr int kRounds = 5;
  RunCorpus run("atomics.ptx", Interleaving::random);
  auto in = randomNumbers<unsigned>(256, 0, 4e9);
  Buffer to = run.empty<unsigned>(256);
  run.run("digit_rounds", {1, 1, 1}, {256, 1, 1}, 0, run.buffer(in), to,
          kRounds);
  auto out = run.read<unsigned>(to, 256);
  for (int i = 0; i < 256; ++i) {
    unsigned sum = 0;
    for (int round = 0; round < kRounds; ++round)
      for (unsigned other : in)
        sum += (other >> 4 * round & 15) < (in[i] >> 4 * round & 15);
    EXPECT_EQ(out[i], sum);
  }
}

} // namespace kiln
