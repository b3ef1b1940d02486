// Wgmma: what a product can be besides f32 += a * b from shared memory.
#include "conformance/Conformance.h"

#include <kiln/run/run.h>

using namespace conformance;

class Wgmma : public OnDevice {};
INSTANTIATE_ON_DEVICES(Wgmma);

namespace {

/// One product of a [64, k] and a [k, n] tile, K contiguous.
struct Form {
  Type type = f16;
  Type sum = f32;
  int n = 32;
  int instruction_n = 0;
  TileLayout a_layout() const { return layout(64); }
  TileLayout b_layout() const { return layout(n); }
  int k() const { return 128 / size_bytes(type); }
  Swizzle swizzle = Swizzle::b128;

private:
  TileLayout layout(int rows) const {
    TileLayout tile{type, rows, k(), swizzle};
    if (swizzle == Swizzle::none)
      tile.panel = 16 / size_bytes(type);
    return tile;
  }
};

/// What is done with the tiles once they are in shared memory.
using Body = std::function<void(Accumulator &, const SharedTile &a,
                                const SharedTile &b, const Tensor &c)>;

Kernel build(const Form &form, const Body &body) {
  KernelBuilder kb("form", {.warpgroups = 1});
  auto map = [&](const char *name, const TileLayout &tile) {
    return kb.tensor_map(name, form.type, {tile.rows, tile.columns},
                         {.tile = {tile.rows, tile.columns},
                          .swizzle = tile.swizzle,
                          .panel = tile.panel});
  };
  TmaTensor a = map("a", form.a_layout()), b = map("b", form.b_layout());
  Tensor c = kb.tensor("c", form.sum, {64, form.n});
  Tensor d = kb.tensor("d", form.sum, {64, form.n});
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
  Accumulator acc(form.sum, 64, form.n, form.instruction_n);
  body(acc, a_tile, b_tile.transpose(), c);
  acc.store(d, {0, 0});
  return compile_checked(kb.module());
}

/// Small integers, so that every sum is exact; not negative where the type has
/// no sign.
std::vector<double> numbers(std::size_t count, unsigned seed, Type type) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> digits(type == u8 ? 0 : -3, 3);
  std::vector<double> result(count);
  for (double &value : result)
    value = digits(random);
  return result;
}

/// d == times * a * b + plus * c on the device, if it is there.
void expect(const std::string &id, const Form &form, const Kernel &kernel,
            double times, double plus = 0) {
  Device *device = conformance::open(id).device.get();
  if (!device)
    return;
  int k = form.k(), n = form.n;
  auto a = numbers(64 * k, 1, form.type), b = numbers(n * k, 2, form.type);
  auto c = numbers(64 * n, 3, form.sum);
  std::vector<double> want(64 * n);
  for (int i = 0; i < 64; ++i)
    for (int j = 0; j < n; ++j) {
      double sum = 0;
      for (int l = 0; l < k; ++l)
        sum += a[i * k + l] * b[j * k + l];
      want[i * n + j] = times * sum + plus * c[i * n + j];
    }
  auto a_bytes = elements(form.type, a), b_bytes = elements(form.type, b);
  auto c_bytes = elements(form.sum, c), d = poisoned(form.sum, 64 * n);
  LaunchResult result = try_run(*device, kernel, a_bytes, b_bytes, c_bytes, d);
  EXPECT_TRUE(result.findings.empty()) << result.findings.front().message;
  EXPECT_EQ(values(form.sum, d), want)
      << name(form.type) << " to " << name(form.sum) << ", n " << n;
}

void plain(Accumulator &acc, const SharedTile &a, const SharedTile &b,
           const Tensor &) {
  acc.mma(a, b);
}

} // namespace

TEST_P(Wgmma, EveryTypeAndAccumulator) {
  for (Form form :
       {Form{f16, f16}, Form{bf16, f32}, Form{tf32, f32}, Form{e4m3, f16},
        Form{e5m2, f32}, Form{i8, i32}, Form{u8, i32}})
    expect(GetParam(), form, build(form, plain), 1);
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Wgmma, EveryWidth) {
  for (int n = 8; n <= 256; n += 8)
    expect(GetParam(), {.n = n}, build({.n = n}, plain), 1);
  Form form{.n = 96, .instruction_n = 24};
  Kernel kernel = build(form, plain);
  EXPECT_EQ(count(kernel.ptx, "wgmma.mma_async.sync.aligned.m64n24k16"), 16);
  expect(GetParam(), form, kernel, 1);
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Wgmma, WithoutASwizzle) {
  for (Type type : {f16, tf32, e4m3}) {
    Form form{.type = type, .swizzle = Swizzle::none};
    expect(GetParam(), form, build(form, plain), 1);
  }
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Wgmma, AFromRegisters) {
  for (Form form : {Form{f16, f32}, Form{bf16, f32}, Form{tf32, f32},
                    Form{e4m3, f32}, Form{i8, i32}, Form{f16, f16}}) {
    Kernel kernel = build(form, [&](Accumulator &acc, const SharedTile &a,
                                    const SharedTile &b, const Tensor &) {
      auto layout = RegisterLayout::wgmma_operand(form.type, 64, form.k());
      acc.mma(load_tile(layout, a), b);
    });
    expect(GetParam(), form, kernel, 1);
  }
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Wgmma, NegateAndAdd) {
  auto negated = [](MmaOptions options) {
    return [options](Accumulator &acc, const SharedTile &a, const SharedTile &b,
                     const Tensor &) { acc.mma(a, b, options); };
  };
  expect(GetParam(), {}, build({}, negated({.negate_a = true})), -1);
  expect(GetParam(), {}, build({}, negated({.negate_b = true})), -1);
  expect(GetParam(), {},
         build({}, negated({.negate_a = true, .negate_b = true})), 1);
  Form integers{i8, i32};
  expect(GetParam(), integers, build(integers, negated({.saturate = true})), 1);
  Kernel twice = build({}, [](Accumulator &acc, const SharedTile &a,
                              const SharedTile &b, const Tensor &) {
    acc.mma(a, b);
    acc.mma(a, b, {.add = thread_id() >= 0});
    acc.mma(a, b, {.add = thread_id() < 0}); // overwrites
    acc.mma(a, b, {.negate_b = true});
    acc.mma(a, b);
  });
  expect(GetParam(), {}, twice, 1);
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Wgmma, StartsFromATile) {
  for (Form form : {Form{f16, f32}, Form{f16, f16}, Form{u8, i32}}) {
    Kernel kernel = build(form, [](Accumulator &acc, const SharedTile &a,
                                   const SharedTile &b, const Tensor &c) {
      acc.start_from(load_tile(acc.layout(), c, {0, 0}));
      acc.mma(a, b);
      acc.wait(0);
      RegisterTile half_way = acc.tile();
      acc.start_from(half_way);
      acc.mma(a, b);
    });
    expect(GetParam(), form, kernel, 2, 1);
  }
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Wgmma, StepByStep) {
  // The instructions one by one, on slices of the operands.
  Form form;
  Kernel kernel = build(form, [&](Accumulator &acc, const SharedTile &a,
                                  const SharedTile &b, const Tensor &) {
    wgmma_fence();
    for (int k = 0; k < form.k(); k += 16)
      acc.issue(a.slice(0, k, 64, 16), b.slice(k, 0, 16, form.n));
    wgmma_commit();
    acc.wait(0);
  });
  EXPECT_EQ(count(kernel.ptx, "wgmma.mma_async"), 4);
  EXPECT_EQ(count(kernel.ptx, "wgmma.fence"), 1);
  expect(GetParam(), form, kernel, 1);
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Wgmma, SharedMemoryServesTwice) {
  // What goes out lies over the operands, which nobody needs any more.
  KernelBuilder kb("over", {.warpgroups = 1});
  TmaOptions options{.tile = {64, 64}, .swizzle = Swizzle::b128};
  TmaTensor a = kb.tensor_map("a", f16, {64, 64}, options);
  TmaTensor d = kb.tensor_map("d", f16, {64, 64}, options);
  SharedTile operand = kb.shared(a.tile());
  Epilogue out(kb, d, {.buffers = 1, .place = {.over = operand}});
  EXPECT_EQ(kb.shared_bytes(), 64 * 128);
  kb.shared({f16, 8, 64}, {.offset = 16384});
  EXPECT_EQ(kb.shared_bytes(), 16384 + 1024);
  Mbarrier full = kb.mbarriers(1)[0];
  one_thread([&] {
    full.init(1);
    fence_mbarrier_init();
    full.arrive_expect_tx(a.tile_bytes());
    tma_load(operand, a, {0, 0}, full);
  });
  sync_threads();
  full.wait(0);
  Accumulator acc(f32, 64, 64);
  acc.mma(operand, operand.transpose());
  out.store(acc, {0, 0});
  out.finish();
  Kernel kernel = compile_checked(kb.module());
  OPEN_OR_SKIP(device);
  auto x = numbers(64 * 64, 5, f16);
  std::vector<double> want(64 * 64);
  for (int i = 0; i < 64; ++i)
    for (int j = 0; j < 64; ++j)
      for (int l = 0; l < 64; ++l)
        want[i * 64 + j] += x[i * 64 + l] * x[j * 64 + l];
  auto in = elements(f16, x), found = poisoned(f16, 64 * 64);
  EXPECT_TRUE(try_run(device, kernel, in, found).findings.empty());
  EXPECT_EQ(values(f16, found), want);
}
