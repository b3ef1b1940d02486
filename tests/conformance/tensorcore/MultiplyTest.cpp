// Multiply: Pipeline and Accumulator in the small, apart from any GEMM.
#include "conformance/Conformance.h"

#include <kiln/run/run.h>

using namespace conformance;

class Multiply : public OnDevice {};
INSTANTIATE_ON_DEVICES(Multiply);

static constexpr int kM = 64, kN = 32, kTileK = 64;

namespace {
/// Small integers, so that every sum is exact.
std::vector<double> small_integers(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> digits(-3, 3);
  std::vector<double> result(count);
  for (double &value : result)
    value = digits(random);
  return result;
}

/// `times` A * B, with A [kM, k] and B [kN, k].
std::vector<float> product(const std::vector<double> &a,
                           const std::vector<double> &b, int k,
                           double times = 1) {
  std::vector<float> result(kM * kN);
  for (int i = 0; i < kM; ++i)
    for (int j = 0; j < kN; ++j) {
      double sum = 0;
      for (int l = 0; l < k; ++l)
        sum += a[i * k + l] * b[j * k + l];
      result[i * kN + j] = static_cast<float>(times * sum);
    }
  return result;
}

/// One tile of A and of B in shared memory, and what `body` does with them.
Kernel
one_tile(const std::function<void(Accumulator &, const SharedTile &,
                                  const SharedTile &, const Value &)> &body,
         Swizzle swizzle = Swizzle::b128) {
  KernelBuilder kb("one_tile", {.warpgroups = 1});
  TmaTensor a = kb.tensor_map("a", f16, {kM, kTileK},
                              {.tile = {kM, kTileK}, .swizzle = swizzle});
  TmaTensor b = kb.tensor_map("b", f16, {kN, kTileK},
                              {.tile = {kN, kTileK}, .swizzle = swizzle});
  Tensor d = kb.tensor("d", f32, {kM, kN});
  Value n = kb.scalar("n", i32);
  SharedTile a_tile = kb.shared(a.tile()), b_tile = kb.shared(b.tile());
  Mbarrier full = kb.mbarriers(1)[0];
  one_thread([&] {
    full.init(1);
    fence_mbarrier_init();
    full.arrive_expect_tx(a.tile_bytes() + b.tile_bytes());
    tma_load(a_tile, a, {0, 0}, full);
    tma_load(b_tile, b, {0, 0}, full);
  });
  sync_threads();
  full.wait(0);
  Accumulator acc(f32, kM, kN);
  body(acc, a_tile, b_tile.transpose(), n);
  acc.store(d, {0, 0});
  return compile_checked(kb.module());
}

/// Run it and expect `times` the product.
void expect_times(Device &device, const Kernel &kernel, int n, double times) {
  auto a = small_integers(kM * kTileK, n), b = small_integers(kN * kTileK, 9);
  auto a_bytes = elements(f16, a), b_bytes = elements(f16, b);
  std::vector<float> d(kM * kN, -1e9f);
  run(device, kernel, a_bytes, b_bytes, d, n);
  EXPECT_EQ(d, product(a, b, kTileK, times)) << "n = " << n;
}
} // namespace

TEST_P(Multiply, EverySwizzle) {
  for (Swizzle swizzle : {Swizzle::b32, Swizzle::b64, Swizzle::b128}) {
    Kernel kernel = one_tile(
        [](auto &acc, auto &a, auto &b, auto &) { acc.mma(a, b); }, swizzle);
    EXPECT_EQ(count(kernel.ptx, "wgmma.mma_async"), kTileK / 16);
    if (Device *device = conformance::open(GetParam()).device.get())
      expect_times(*device, kernel, 1, 1);
  }
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Multiply, FirstMmaInsideALoop) {
  Kernel kernel = one_tile([](auto &acc, auto &a, auto &b, auto &n) {
    for_range(0, n, [&](Value) {
      acc.mma(a, b);
      acc.wait(0);
    });
  });
  OPEN_OR_SKIP(device);
  for (int n : {1, 2, 5})
    expect_times(device, kernel, n, n);
}

TEST_P(Multiply, ResetStartsOver) {
  Kernel kernel = one_tile([](auto &acc, auto &a, auto &b, auto &n) {
    acc.mma(a, b);
    acc.mma(a, b);
    acc.wait(0);
    acc.reset();
    acc.mma(a, b);
    acc.wait(0);
    for_range(1, n, [&](Value) {
      acc.mma(a, b);
      acc.wait(0);
    });
  });
  OPEN_OR_SKIP(device);
  for (int n : {1, 3})
    expect_times(device, kernel, n, n);
}

TEST_P(Multiply, MmaAfterALoopAdds) {
  Kernel kernel = one_tile([](auto &acc, auto &a, auto &b, auto &n) {
    for_range(0, n, [&](Value) {
      acc.mma(a, b);
      acc.wait(0);
    });
    acc.mma(a, b);
  });
  OPEN_OR_SKIP(device);
  for (int n : {0, 1, 2})
    expect_times(device, kernel, n, n + 1);
}

TEST_P(Multiply, ResetInABranch) {
  Kernel kernel = one_tile([](auto &acc, auto &a, auto &b, auto &n) {
    acc.mma(a, b);
    acc.wait(0);
    if_(n == 1, [&] { acc.reset(); });
    acc.mma(a, b);
  });
  OPEN_OR_SKIP(device);
  expect_times(device, kernel, 1, 1);
  expect_times(device, kernel, 2, 2);
}

TEST_P(Multiply, ResetInEachRoundOfALoop) {
  Kernel kernel = one_tile([](auto &acc, auto &a, auto &b, auto &n) {
    for_range(0, n, [&](Value) {
      acc.reset();
      acc.mma(a, b);
      acc.mma(a, b);
      acc.wait(0);
    });
    acc.mma(a, b);
  });
  OPEN_OR_SKIP(device);
  expect_times(device, kernel, 0, 1);
  expect_times(device, kernel, 3, 3);
}

/// A producer and a consumer warpgroup over `rounds` of runtime K tiles.
static Kernel pipelined(int stages, int rounds) {
  KernelBuilder kb("pipelined", {.warpgroups = 2});
  Dim k = kb.dim("k");
  TmaTensor a = kb.tensor_map("a", f16, {kM, k},
                              {.tile = {kM, kTileK}, .swizzle = Swizzle::b128});
  TmaTensor b = kb.tensor_map("b", f16, {kN, k},
                              {.tile = {kN, kTileK}, .swizzle = Swizzle::b128});
  Tensor d = kb.tensor("d", f32, {rounds * kM, kN});
  Dim tiles = ceil_div(k, kTileK);
  Pipeline pipe(kb, stages, {a, b});
  warpgroup(1, {.registers = 40}, [&] {
    for_range(0, rounds, [&](Value) {
      for_range(0, tiles, [&](Value tile) {
        pipe.produce([&](const Slot &slot) {
          slot.load(a, {0, tile * kTileK});
          slot.load(b, {0, tile * kTileK});
        });
      });
    });
  });
  warpgroup(0, {.registers = 232}, [&] {
    for_range(0, rounds, [&](Value round) {
      Accumulator acc(f32, kM, kN);
      for_range(0, tiles, [&](Value) {
        pipe.consume(acc, [&](const Slot &slot) {
          acc.mma(slot[a], slot[b].transpose());
        });
      });
      pipe.drain(acc);
      acc.store(d, {round * kM, 0});
    });
  });
  return compile_checked(kb.module());
}

TEST_P(Multiply, PipelinesOfOneToFourStages) {
  const int rounds = 3;
  for (int stages : {1, 2, 3, 4}) {
    Kernel kernel = pipelined(stages, rounds);
    Device *device = conformance::open(GetParam()).device.get();
    if (!device)
      continue;
    for (int k : {64, 128, 256, 456}) {
      auto a = small_integers(kM * k, k), b = small_integers(kN * k, k + 1);
      auto a_bytes = elements(f16, a), b_bytes = elements(f16, b);
      std::vector<float> d(rounds * kM * kN, -1e9f), expected;
      for (int i = 0; i < rounds; ++i) {
        auto one = product(a, b, k);
        expected.insert(expected.end(), one.begin(), one.end());
      }
      run(*device, kernel, k, a_bytes, b_bytes, d);
      EXPECT_EQ(d, expected) << stages << " stages, K = " << k;
    }
  }
  SKIP_WITHOUT_DEVICE();
}

/// Run on a device of its own under each order: nothing to report, and `check`.
static void
under_every_order(const std::string &id,
                  const std::function<LaunchResult(Device &)> &launch) {
  if (id != "sim") {
    if (Device *device = conformance::open(id).device.get())
      launch(*device);
    return;
  }
  for (Interleaving order : {Interleaving::eager, Interleaving::lazy, Interleaving::random}) {
    auto device = open_sim({.interleaving = order, .seed = 7});
    LaunchResult result = launch(*device);
    EXPECT_TRUE(result.findings.empty()) << result.to_string();
  }
}

TEST_P(Multiply, OneIsReadWhileAnotherIsInFlight) {
  // d = sum of A * B over n turns; e = what s was in each, which is read while
  // acc is being written.
  KernelBuilder kb("two_in_flight", {.warpgroups = 1});
  TmaOptions box{.tile = {kM, kTileK}, .swizzle = Swizzle::b128};
  TmaTensor a = kb.tensor_map("a", f16, {kM, kTileK}, box);
  TmaTensor b = kb.tensor_map("b", f16, {kM, kTileK}, box);
  Tensor d = kb.tensor("d", f32, {kM, kM}), e = kb.tensor("e", f32, {kM, kM});
  Value n = kb.scalar("n", i32);
  LoadedTile a_loaded = tma_load_once(kb, a, {0, 0});
  LoadedTile b_loaded = tma_load_once(kb, b, {0, 0});
  SharedTile left = a_loaded.wait(), right = b_loaded.wait().transpose();
  Accumulator s(f32, kM, kM), acc(f32, kM, kM);
  RegisterTile sum(f32, s.layout(), 0.0);
  acc.mma(left, right);
  for_range(0, n, [&](Value) {
    s.reset();
    s.mma(left, right);
    acc.mma(left, right);
    s.wait(1);
    sum = sum + s.tile();
  });
  acc.store(d, {0, 0});
  sum.store(e, {0, 0});
  Kernel kernel = compile_checked(kb.module());
  under_every_order(GetParam(), [&](Device &device) {
    auto in = small_integers(kM * kTileK, 1),
         by = small_integers(kM * kTileK, 2);
    auto in_bytes = elements(f16, in), by_bytes = elements(f16, by);
    std::vector<float> out(kM * kM, -1e9f), read(kM * kM, -1e9f);
    LaunchResult result =
        try_run(device, kernel, in_bytes, by_bytes, out, read, 3);
    for (int i = 0; i < kM; ++i)
      for (int j = 0; j < kM; ++j) {
        double one = 0;
        for (int k = 0; k < kTileK; ++k)
          one += in[i * kTileK + k] * by[j * kTileK + k];
        EXPECT_EQ(out[i * kM + j], 4 * one) << i << ", " << j;
        EXPECT_EQ(read[i * kM + j], 3 * one) << i << ", " << j;
      }
    return result;
  });
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Multiply, SlotsAreKeptAndReadByHand) {
  // Two slots are held at once, and released in the order they came; a third
  // reader takes every tile with ordinary loads.
  KernelBuilder kb("slots_by_hand", {.warpgroups = 3});
  Dim k = kb.dim("k");
  TmaTensor a = kb.tensor_map("a", f16, {kM, k},
                              {.tile = {kM, kTileK}, .swizzle = Swizzle::b128});
  TmaTensor b = kb.tensor_map("b", f16, {kN, k},
                              {.tile = {kN, kTileK}, .swizzle = Swizzle::b128});
  Tensor d = kb.tensor("d", f32, {kM, kN}), sums = kb.tensor("sums", f32, {kM});
  Dim tiles = ceil_div(k, kTileK);
  Pipeline pipe(kb, 3, {a, b}, {.consumers = 2});
  warpgroup(2, [&] {
    one_thread([&] {
      for_range(0, tiles, [&](Value tile) {
        Slot slot = pipe.reserve();
        slot.load(a, {0, tile * kTileK});
        slot.load(b, {0, tile * kTileK});
        pipe.commit(slot);
      });
    });
  });
  warpgroup(0, [&] {
    Accumulator acc(f32, kM, kN);
    for_range(0, tiles / 2, [&](Value) {
      Slot first = pipe.acquire(), second = pipe.acquire();
      acc.mma(first[a], first[b].transpose());
      acc.mma(second[a], second[b].transpose());
      wgmma_wait(1);
      pipe.release(first);
      wgmma_wait(0);
      pipe.release(second);
    });
    acc.store(d, {0, 0});
  });
  warpgroup(1, [&] {
    Var sum(f32, 0);
    Value t = warpgroup_thread_id();
    for_range(0, tiles, [&](Value) {
      pipe.read([&](const Slot &slot) {
        for_range(0, kTileK,
                  [&](Value i) { sum = sum + cast(slot[a](t % kM, i), f32); });
      });
    });
    if_(t < kM, [&] { sums(t) = sum; });
  });
  Kernel kernel = compile_checked(kb.module());
  under_every_order(GetParam(), [&](Device &device) {
    const int depth = 6 * kTileK;
    auto in = small_integers(kM * depth, 1), by = small_integers(kN * depth, 2);
    auto in_bytes = elements(f16, in), by_bytes = elements(f16, by);
    std::vector<float> out(kM * kN, -1e9f), rows(kM, -1e9f);
    LaunchResult result =
        try_run(device, kernel, depth, in_bytes, by_bytes, out, rows);
    EXPECT_EQ(out, product(in, by, depth));
    for (int i = 0; i < kM; ++i) {
      double row = 0;
      for (int l = 0; l < depth; ++l)
        row += in[i * depth + l];
      EXPECT_EQ(rows[i], row) << i;
    }
    return result;
  });
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Multiply, TwoConsumersShareEverySlot) {
  // Each warpgroup multiplies its own 64 rows of A by the same B.
  KernelBuilder kb("two_consumers", {.warpgroups = 3});
  Dim k = kb.dim("k");
  TmaOptions options{.tile = {kM, kTileK}, .swizzle = Swizzle::b128};
  TmaTensor top = kb.tensor_map("top", f16, {kM, k}, options);
  TmaTensor bottom = kb.tensor_map("bottom", f16, {kM, k}, options);
  TmaTensor b = kb.tensor_map("b", f16, {kN, k},
                              {.tile = {kN, kTileK}, .swizzle = Swizzle::b128});
  Tensor d = kb.tensor("d", f32, {2 * kM, kN});
  Dim tiles = ceil_div(k, kTileK);
  Pipeline pipe(kb, 2, {top, bottom, b}, {.consumers = 2});
  for (int i : {0, 1})
    warpgroup(i, [&] {
      const TmaTensor &mine = i == 0 ? top : bottom;
      Accumulator acc(f32, kM, kN);
      for_range(0, tiles, [&](Value) {
        pipe.consume(acc, [&](const Slot &slot) {
          acc.mma(slot[mine], slot[b].transpose());
        });
      });
      acc.store(d, {i * kM, 0});
    });
  warpgroup(2, [&] {
    for_range(0, tiles, [&](Value tile) {
      pipe.produce([&](const Slot &slot) {
        for (const TmaTensor *tensor : {&top, &bottom, &b})
          slot.load(*tensor, {0, tile * kTileK});
      });
    });
  });
  Kernel kernel = compile_checked(kb.module());
  OPEN_OR_SKIP(device);
  for (int k : {64, 320}) {
    auto a0 = small_integers(kM * k, 1), a1 = small_integers(kM * k, 2),
         bs = small_integers(kN * k, 3);
    auto top_bytes = elements(f16, a0), bottom_bytes = elements(f16, a1),
         b_bytes = elements(f16, bs);
    std::vector<float> d(2 * kM * kN, -1e9f), expected = product(a0, bs, k);
    auto second = product(a1, bs, k);
    expected.insert(expected.end(), second.begin(), second.end());
    run(device, kernel, k, top_bytes, bottom_bytes, b_bytes, d);
    EXPECT_EQ(d, expected) << k;
  }
}

TEST_P(Multiply, EveryOperandType) {
  for (Type type : {bf16, tf32, e4m3, e5m2, i8, u8}) {
    // 128 bytes of K, and small integers that every type holds.
    int k = 128 / size_bytes(type);
    Type sum = is_float(type) ? f32 : i32;
    KernelBuilder kb("operands", {.warpgroups = 1});
    TmaTensor a = kb.tensor_map("a", type, {kM, k},
                                {.tile = {kM, k}, .swizzle = Swizzle::b128});
    TmaTensor b = kb.tensor_map("b", type, {kN, k},
                                {.tile = {kN, k}, .swizzle = Swizzle::b128});
    Tensor d = kb.tensor("d", sum, {kM, kN});
    Pipeline pipe(kb, 1, {a, b});
    pipe.produce([&](const Slot &slot) {
      slot.load(a, {0, 0});
      slot.load(b, {0, 0});
    });
    Accumulator acc(sum, kM, kN);
    pipe.consume(
        acc, [&](const Slot &slot) { acc.mma(slot[a], slot[b].transpose()); });
    acc.store(d, {0, 0});
    Kernel kernel = compile_checked(kb.module());
    EXPECT_EQ(count(kernel.ptx, "wgmma.mma_async"), 4) << name(type);
    Device *device = conformance::open(GetParam()).device.get();
    if (!device)
      continue;
    auto as = small_integers(kM * k, 5), bs = small_integers(kN * k, 6);
    if (type == Type::u8)
      for (auto *side : {&as, &bs})
        for (double &value : *side)
          value += 3;
    auto a_bytes = elements(type, as), b_bytes = elements(type, bs);
    auto d_bytes = poisoned(sum, kM * kN);
    run(*device, kernel, a_bytes, b_bytes, d_bytes);
    auto expected = product(as, bs, k);
    EXPECT_EQ(values(sum, d_bytes),
              std::vector<double>(expected.begin(), expected.end()))
        << name(type);
  }
  SKIP_WITHOUT_DEVICE();
}
