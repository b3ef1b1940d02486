// TensorMemory: narrow floats, factors of blocks, sums of f16 and the shapes of
// loads and stores. On the simulator, and assembled; no such GPU was there.
#include "conformance/AllOrders.h"
#include "conformance/Conformance.h"

#include <kiln/check/sim.h>
#include <kiln/run/run.h>

#include <fmt/format.h>

#include <cmath>

using namespace conformance;

namespace {
constexpr int kRows = 128;

/// A product of two operands of 128 bytes of K a step.
struct Product {
  Type a, b;
  int n, steps;
  Type scale = ue8m0; ///< of `block` elements; 0: none
  int block = 0;
  bool is_copied = true; ///< factors go to tensor memory

  int step() const { return static_cast<int>(elements_in(a, 128)); }
  int k() const { return steps * step(); }
  int blocks() const { return block ? step() / block : 0; }
  Scaling scaling() const { return block == 16 ? Scaling::nv : Scaling::mx; }
};
} // namespace

/// Tiles come by TMA, factors in pieces of 512 bytes.
static Kernel build(const Product &product) {
  KernelBuilder kb("product", {.warpgroups = 1, .target = "sm_100a"});
  int n = product.n, k = product.k(), scale_rows = (n + 127) / 128 * 128;
  int pieces = product.blocks() / 4;
  auto operand = [&](const char *name, Type type, int rows) {
    return kb.tensor_map(name, type, {rows, k},
                         {.tile = {rows, product.step()},
                          .swizzle = default_swizzle(type, product.step())});
  };
  auto factors = [&](const char *name, int rows) {
    return kb.tensor_map(name, product.scale,
                         {rows / 128, product.steps * pieces * 2, 256},
                         {.tile = {rows / 128, pieces * 2, 256}});
  };
  std::vector<TmaTensor> maps = {operand("a", product.a, kRows),
                                 operand("b", product.b, n)};
  if (product.block) {
    maps.push_back(factors("a_scales", kRows));
    maps.push_back(factors("b_scales", scale_rows));
  }
  Tensor d = kb.tensor("d", f32, {kRows, n});
  kb.grid(1);
  Mbarrier done = kb.mbarriers(1, "done")[0];
  one_thread([&] { done.init(1); });
  Pipeline pipeline(kb, 2, maps, {.tensor_group = 1});
  TensorMemory memory(kb, 512);
  TensorTile acc = memory.tile(f32, kRows, n);
  std::optional<TensorScales> of_a, of_b;
  if (product.block) {
    of_a = memory.scales(product.scale, kRows, product.blocks(), 256);
    of_b = memory.scales(product.scale, scale_rows, product.blocks(), 320);
  }
  one_thread([&] {
    for_range(0, product.steps, [&](Value i) {
      pipeline.produce([&](const Slot &slot) {
        slot.load(maps[0], {0, i * product.step()});
        slot.load(maps[1], {0, i * product.step()});
        for (std::size_t j = 2; j < maps.size(); ++j)
          slot.load(maps[j], {0, i * (pieces * 2), 0});
      });
      Slot slot = pipeline.acquire();
      if (of_a && product.is_copied) {
        of_a->copy(slot[maps[2]]);
        of_b->copy(slot[maps[3]]);
      }
      acc.mma(slot[maps[0]], slot[maps[1]].transpose(),
              {.add = i != 0, .a_scales = of_a, .b_scales = of_b});
      pipeline.release(slot);
    });
    done.arrive_products();
  });
  done.wait(0);
  tensor_fence_after();
  for (int first = 0; first < n; first += 64)
    acc.slice(first, 64).load().store(d, {0, first}, {.is_inside = true});
  return compile_checked(kb.module());
}

/// Random factors in pieces: powers of two, or numbers, around 1.
static std::vector<std::uint8_t> random_factors(const Product &product,
                                                int rows, unsigned seed) {
  std::vector<std::uint8_t> bytes(rows * product.steps * product.blocks());
  fill_random(product.scale, bytes.data(), bytes.size(), seed, 0.125, 4);
  return bytes;
}

static void expect_right(const Product &product, unsigned seed) {
  SCOPED_TRACE(fmt::format("{} x {}, n {}, factors of {}", name(product.a),
                           name(product.b), product.n, product.block));
  Kernel kernel = build(product);
  int n = product.n, k = product.k(), scale_rows = (n + 127) / 128 * 128;
  auto random = [&](Type type, std::int64_t count, unsigned from) {
    std::vector<std::uint8_t> bytes(bytes_of(type, count));
    fill_random(type, bytes.data(), count, from, -4, 4);
    return bytes;
  };
  auto a = random(product.a, std::int64_t{kRows} * k, seed);
  auto b = random(product.b, std::int64_t{n} * k, seed + 1);
  auto of_a = random_factors(product, kRows, seed + 2);
  auto of_b = random_factors(product, scale_rows, seed + 3);
  std::vector<float> d(std::size_t(kRows) * n, NAN);
  auto device = open_all_orders(DeviceDescription::b200());
  if (product.block)
    run(*device, kernel, a, b, of_a, of_b, d);
  else
    run(*device, kernel, a, b, d);
  auto value = [&](Type type, const std::vector<std::uint8_t> &bytes, int row,
                   int at) {
    return from_bits(type,
                     load_bits(type, bytes.data(), std::int64_t{row} * k + at));
  };
  auto factor = [&](bool is_a, int rows, int row, int at) {
    if (!product.block)
      return 1.0;
    const auto &bytes = is_a ? of_a : of_b;
    return from_bits(
        product.scale,
        bytes[scale_index(product.scaling(), {is_a, rows, k}, row, at)]);
  };
  for (int row = 0; row < kRows; ++row)
    for (int column = 0; column < n; ++column) {
      double want = 0, most = 0;
      for (int i = 0; i < k; ++i) {
        double term =
            value(product.a, a, row, i) * value(product.b, b, column, i) *
            factor(true, kRows, row, i) * factor(false, scale_rows, column, i);
        want += term;
        most += std::abs(term);
      }
      ASSERT_NEAR(d[row * n + column], want, 1e-5 * most)
          << row << ", " << column;
    }
}

TEST(TensorProduct, OfNarrowFloats) {
  unsigned seed = 0;
  for (auto [a, b] : {std::pair{e2m3, e3m2}, {e4m3, e2m3}, {e3m2, e5m2}})
    expect_right({a, b, 64, 1}, ++seed);
}

TEST(TensorProduct, WithFactors) {
  unsigned seed = 10;
  for (const Product &product : {Product{e4m3, e4m3, 128, 2, ue8m0, 32},
                                 Product{e5m2, e4m3, 64, 1, ue8m0, 32},
                                 Product{e2m3, e3m2, 256, 1, ue8m0, 32},
                                 Product{e2m1, e2m1, 128, 2, ue8m0, 32},
                                 Product{e2m1, e2m1, 192, 2, ue4m3, 16}})
    expect_right(product, seed += 7);
}

TEST(TensorProduct, FactorsThatNobodyCopiedAreFound) {
  Product product{e4m3, e4m3, 128, 1, ue8m0, 32};
  product.is_copied = false;
  Kernel kernel = build(product);
  auto device = open_sim({.device = DeviceDescription::b200()});
  auto a = random_elements(e4m3, kRows * product.k(), 1), b = a;
  auto factors = random_factors(product, kRows, 2);
  std::vector<float> d(kRows * product.n);
  LaunchResult result = try_run(*device, kernel, a, b, factors, factors, d);
  ASSERT_FALSE(result.findings.empty());
  EXPECT_EQ(result.findings[0].id, "uninitialized-store");
}

TEST(TensorProduct, HasItsKinds) {
  for (auto [product, text] :
       {std::pair{Product{e4m3, e4m3, 128, 1, ue8m0, 32},
                  "kind::mxf8f6f4.block_scale.scale_vec::1X"},
        {Product{e2m1, e2m1, 128, 1, ue8m0, 32},
         "kind::mxf4.block_scale.scale_vec::2X"},
        {Product{e2m1, e2m1, 128, 1, ue4m3, 16},
         "kind::mxf4nvf4.block_scale.scale_vec::4X"}}) {
    Kernel kernel = build(product);
    EXPECT_EQ(count(kernel.ptx, text), 4) << kernel.ptx;
    EXPECT_EQ(count(kernel.ptx, "tcgen05.cp.cta_group::1.32x128b.warpx4"),
              2 * product.blocks() / 4);
    bool is_nv = product.scale == ue4m3;
    EXPECT_EQ(count(kernel.ptx, is_nv ? ".version 8.7" : ".version 8.6"), 1);
  }
}

/// A tile of `rows`, stored by one shape and loaded by another.
static Kernel moving(Type type, int rows, int columns, bool is_spread,
                     TensorShape stored, TensorShape loaded) {
  KernelBuilder kb("moving", {.warpgroups = 1, .target = "sm_100a"});
  Tensor x = kb.tensor("x", type, {rows, columns});
  Tensor y = kb.tensor("y", type, {rows, columns});
  kb.grid(1);
  TensorMemory memory(kb, 128);
  TensorTile tile = is_spread ? memory.half_sums(rows, columns)
                              : memory.tile(type, rows, columns);
  tile.store(load_tile(tile.layout(stored), x, {0, 0}, {.is_inside = true}));
  tensor_fence_before();
  sync_threads();
  tensor_fence_after();
  tile.load(loaded).store(y, {0, 0}, {.is_inside = true});
  return compile_checked(kb.module());
}

TEST(TensorMove, InEveryShape) {
  auto device = open_all_orders(DeviceDescription::b200());
  constexpr TensorShape kShapes[] = {TensorShape::b32x32, TensorShape::b16x64,
                                     TensorShape::b16x128, TensorShape::b16x256,
                                     TensorShape::b16x32x2};
  const char *words[] = {"32x32b", "16x64b", "16x128b", "16x256b", "16x32bx2"};
  unsigned seed = 0;
  for (int i = 0; i < 5; ++i)
    for (auto [type, rows, is_spread] : {std::tuple{f32, 128, false},
                                         {f32, 64, false},
                                         {f16, 128, false},
                                         {f16, 128, true},
                                         {f16, 64, true}}) {
      if (rows == 64 && i == 0)
        continue;
      TensorShape other = kShapes[rows == 64 ? 1 + i % 4 : (i + 1) % 5];
      SCOPED_TRACE(fmt::format("{} of {} rows of {}, spread {}", words[i], rows,
                               name(type), is_spread));
      int columns = 48;
      Kernel kernel = moving(type, rows, columns, is_spread, kShapes[i], other);
      std::string opcode = fmt::format("tcgen05.st.sync.aligned.{}.", words[i]);
      EXPECT_GE(count(kernel.ptx, opcode), 1);
      EXPECT_EQ(count(kernel.ptx, ".unpack::16b") > 0, is_spread);
      auto x = random_elements(type, std::size_t(rows) * columns, ++seed);
      auto y = poisoned(type, std::size_t(rows) * columns);
      run(*device, kernel, x, y);
      EXPECT_EQ(x, y);
    }
}

// Of 64 rows the registers are those of a wgmma's sums.
TEST(TensorMove, AsAnAccumulator) {
  KernelBuilder kb("k", {.warpgroups = 1, .target = "sm_100a"});
  TensorMemory memory(kb, 64);
  EXPECT_TRUE(memory.tile(f32, 64, 32).layout(TensorShape::b16x256) ==
              RegisterLayout::accumulator(64, 32));
}

TEST(TensorProduct, IntoHalves) {
  KernelBuilder kb("halves", {.warpgroups = 1, .target = "sm_100a"});
  constexpr int kN = 64, kK = 64;
  Tensor a = kb.tensor("a", f16, {kRows, kK}),
         b = kb.tensor("b", f16, {kN, kK});
  Tensor d = kb.tensor("d", f16, {kRows, kN});
  kb.grid(1);
  SharedTile tile_a = kb.shared(TileLayout::of(f16, kRows, kK));
  SharedTile tile_b = kb.shared(TileLayout::of(f16, kN, kK));
  Mbarrier done = kb.mbarriers(1)[0];
  one_thread([&] {
    done.init(1);
    fence_mbarrier_init();
  });
  TensorMemory memory(kb, 64);
  TensorTile acc = memory.half_sums(kRows, kN);
  copy(CopyScope::cta, tile_a, a);
  copy(CopyScope::cta, tile_b, b);
  fence_async_shared();
  sync_threads();
  one_thread([&] {
    acc.mma(tile_a, tile_b.transpose());
    done.arrive_products();
  });
  done.wait(0);
  tensor_fence_after();
  acc.load().store(d, {0, 0}, {.is_inside = true});
  Kernel kernel = compile_checked(kb.module());
  auto device = open_all_orders(DeviceDescription::b200());
  auto x = random_elements(f16, kRows * kK, 1),
       y = random_elements(f16, kN * kK, 2), z = poisoned(f16, kRows * kN);
  run(*device, kernel, x, y, z);
  auto p = values(f16, x), q = values(f16, y), got = values(f16, z);
  for (int i = 0; i < kRows; ++i)
    for (int j = 0; j < kN; ++j) {
      double want = 0;
      for (int l = 0; l < kK; ++l)
        want += p[i * kK + l] * q[j * kK + l];
      ASSERT_NEAR(got[i * kN + j], want, 0.03) << i << ", " << j;
    }
}
