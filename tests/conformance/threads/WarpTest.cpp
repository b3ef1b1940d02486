// Warp: shuffles, votes and reductions against what each lane should see.
#include "conformance/Conformance.h"

#include <kiln/run/run.h>

#include <algorithm>
#include <array>
#include <numeric>

using namespace conformance;

class Warp : public OnDevice {};
INSTANTIATE_ON_DEVICES(Warp);

/// What lane `lane` of groups of `width` gets, by the number of its partner.
static int partner(int kind, int lane, int by, int width) {
  int first = lane / width * width;
  int from = kind == 0   ? lane ^ by
             : kind == 1 ? lane - by
             : kind == 2 ? lane + by
                         : first + by;
  return from < first || from >= first + width ? lane : from;
}

TEST_P(Warp, ShufflesOfEveryType) {
  for (Type type : {i8, u16, i32, u32, i64, f16, bf16, f32, f64}) {
    KernelBuilder kb("shuffles", {.threads = 64});
    Tensor x = kb.tensor("x", type, {64});
    Tensor y = kb.tensor("y", type, {4, 64});
    Value t = thread_id(), mine = x(t);
    y(0, t) = shuffle_xor(mine, 5);
    y(1, t) = shuffle_up(mine, 3);
    y(2, t) = shuffle_down(mine, 7);
    y(3, t) = shuffle_from(mine, 9);
    Kernel kernel = compile_checked(kb.module());
    int words = size_bits(type) == 64 ? 2 : 1;
    for (const char *mode : {"bfly", "up", "down", "idx"})
      EXPECT_EQ(count(kernel.ptx, std::string("shfl.sync.") + mode + ".b32"),
                words)
          << name(type);
    Device *device = conformance::open(GetParam()).device.get();
    if (!device)
      continue;
    std::vector<double> numbers(64), expected(256);
    for (int t = 0; t < 64; ++t)
      numbers[t] = is_unsigned_integer(type) ? t : t - 20;
    int by[] = {5, 3, 7, 9};
    for (int k = 0; k < 256; ++k)
      expected[k] =
          numbers[k % 64 / 32 * 32 + partner(k / 64, k % 32, by[k / 64], 32)];
    std::vector<std::uint8_t> in = elements(type, numbers);
    std::vector<std::uint8_t> out = poisoned(type, 256);
    run(*device, kernel, in, out);
    EXPECT_EQ(values(type, out), expected) << name(type);
  }
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Warp, ShufflesInGroups) {
  for (int width : {2, 8, 16}) {
    KernelBuilder kb("groups", {.threads = 32});
    Tensor y = kb.tensor("y", i32, {4, 32});
    Value t = thread_id();
    ShuffleOptions options{.width = width};
    y(0, t) = shuffle_xor(t, 1, options);
    y(1, t) = shuffle_up(t, 1, options);
    y(2, t) = shuffle_down(t, 1, options);
    y(3, t) = shuffle_from(t, 1, options);
    Kernel kernel = compile_checked(kb.module());
    Device *device = conformance::open(GetParam()).device.get();
    if (!device)
      continue;
    std::vector<int> found(128, -1), expected;
    for (int k = 0; k < 128; ++k)
      expected.push_back(partner(k / 32, k % 32, 1, width));
    run(*device, kernel, found);
    EXPECT_EQ(found, expected) << width;
  }
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Warp, ShuffleByAValueAmongSomeLanes) {
  // The lower half only: the upper one is somewhere else.
  KernelBuilder kb("some", {.threads = 32});
  Tensor y = kb.tensor("y", i32, {32});
  Value t = thread_id();
  if_(
      t < 16,
      [&] {
        y(t) = shuffle_from(t * 10, 15 - t, {.members = 0xFFFF});
        warp_sync(0xFFFF);
      },
      [&] { y(t) = -t; });
  Kernel kernel = compile_checked(kb.module());
  EXPECT_EQ(count(kernel.ptx, "bar.warp.sync"), 1);
  OPEN_OR_SKIP(device);
  std::vector<int> found(32, 7), expected;
  for (int t = 0; t < 32; ++t)
    expected.push_back(t < 16 ? (15 - t) * 10 : -t);
  run(device, kernel, found);
  EXPECT_EQ(found, expected);
}

TEST_P(Warp, Votes) {
  KernelBuilder kb("votes", {.threads = 96});
  Tensor y = kb.tensor("y", u32, {3, 96});
  Value t = thread_id();
  Value below = t < 40; // all of warp 0, some of 1, none of 2
  y(0, t) = cast(vote_all(below), u32);
  y(1, t) = cast(vote_any(below), u32);
  y(2, t) = ballot(below);
  Kernel kernel = compile_checked(kb.module());
  for (const char *kind : {"all.pred", "any.pred", "ballot.b32"})
    EXPECT_EQ(count(kernel.ptx, std::string("vote.sync.") + kind), 1);
  OPEN_OR_SKIP(device);
  std::vector<unsigned> found(288, 7), expected;
  for (auto perWarp :
       {std::array{1u, 0u, 0u}, {1u, 1u, 0u}, {0xFFFFFFFFu, 0xFFu, 0u}})
    for (int t = 0; t < 96; ++t)
      expected.push_back(perWarp[t / 32]);
  run(device, kernel, found);
  EXPECT_EQ(found, expected);
}

TEST_P(Warp, WarpSyncOrdersSharedMemory) {
  KernelBuilder kb("meet", {.threads = 32});
  Tensor y = kb.tensor("y", i32, {32});
  SharedTile tile = kb.shared({.type = i32, .rows = 1, .columns = 32});
  Value t = thread_id();
  tile(0, t) = t * t;
  warp_sync();
  y(t) = tile(0, 31 - t);
  Kernel kernel = compile_checked(kb.module());
  OPEN_OR_SKIP(device);
  std::vector<int> found(32, -1), expected;
  for (int t = 0; t < 32; ++t)
    expected.push_back((31 - t) * (31 - t));
  run(device, kernel, found);
  EXPECT_EQ(found, expected);
}

TEST_P(Warp, Reductions) {
  for (Type type : {i32, u32, i64, u64, f16, f32, f64}) {
    KernelBuilder kb("reductions", {.threads = 64});
    Tensor x = kb.tensor("x", type, {64});
    Tensor y = kb.tensor("y", type, {3, 64});
    Value t = thread_id(), mine = x(t);
    y(0, t) = warp_reduce(mine, Reduction::add);
    y(1, t) = warp_reduce(mine, Reduction::min);
    y(2, t) = warp_reduce(mine, Reduction::max);
    Kernel kernel = compile_checked(kb.module());
    bool isOne = type == i32 || type == u32;
    EXPECT_EQ(count(kernel.ptx, "redux.sync."), isOne ? 3 : 0) << name(type);
    Device *device = conformance::open(GetParam()).device.get();
    if (!device)
      continue;
    std::vector<double> numbers(64), expected(192);
    for (int t = 0; t < 64; ++t)
      numbers[t] = (t * 37 % 64) - (is_unsigned_integer(type) ? 0 : 30);
    for (int t = 0; t < 64; ++t) {
      auto first = numbers.begin() + t / 32 * 32, last = first + 32;
      expected[t] = std::accumulate(first, last, 0.0);
      expected[64 + t] = *std::min_element(first, last);
      expected[128 + t] = *std::max_element(first, last);
    }
    std::vector<std::uint8_t> in = elements(type, numbers);
    std::vector<std::uint8_t> out = poisoned(type, 192);
    run(*device, kernel, in, out);
    EXPECT_EQ(values(type, out), expected) << name(type);
  }
  SKIP_WITHOUT_DEVICE();
}
