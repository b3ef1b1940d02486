// Vector: several elements in one instruction, and cache hints.
#include "conformance/Conformance.h"

#include <kiln/run/run.h>

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace conformance;

class Vector : public OnDevice {};
INSTANTIATE_ON_DEVICES(Vector);

/// Copies `x` to `y` by vectors of `width`, reversed inside each.
static Kernel reversed(Type type, int width, CacheHint hint) {
  KernelBuilder kb("reversed", {.threads = 16});
  Tensor x = kb.tensor("x", type, {16, 4});
  Tensor y = kb.tensor("y", type, {16, 4});
  Value t = thread_id();
  for (int column = 0; column < 4; column += width) {
    std::vector<Value> values = x.load_vector({t, column}, width, hint);
    std::reverse(values.begin(), values.end());
    CacheHint stored = hint == CacheHint::last_use ? CacheHint::none : hint;
    y.store_vector({t, column}, values, stored);
  }
  Kernel kernel = compile_checked(kb.module());
  for (const ArgumentSpec &argument : kernel.contract.arguments)
    EXPECT_EQ(argument.alignment_bytes, width * size_bytes(type));
  EXPECT_FALSE(kernel.contract.arguments[0].is_output);
  EXPECT_TRUE(kernel.contract.arguments[1].is_output);
  return kernel;
}

static void expect_reversed(const Kernel &kernel, Type type, int width,
                            const std::string &id) {
  Device *device = conformance::open(id).device.get();
  if (!device)
    return;
  std::vector<double> numbers(64), expected(64);
  std::iota(numbers.begin(), numbers.end(), 1);
  for (int k = 0; k < 64; ++k)
    expected[k] = numbers[k / width * width + width - 1 - k % width];
  std::vector<std::uint8_t> in = elements(type, numbers);
  std::vector<std::uint8_t> out = poisoned(type, 64);
  EXPECT_TRUE(try_run(*device, kernel, in, out).ok());
  EXPECT_EQ(values(type, out), expected) << name(type) << " x " << width;
}

TEST_P(Vector, GlobalLoadsAndStores) {
  for (Type type : {u8, i16, f16, bf16, i32, f32, i64, f64})
    for (int width : {1, 2, 4})
      if (width * size_bytes(type) <= 16) {
        Kernel kernel = reversed(type, width, CacheHint::none);
        EXPECT_EQ(count(kernel.ptx, "ld.global"), 4 / width) << name(type);
        EXPECT_EQ(count(kernel.ptx, "st.global"), 4 / width) << name(type);
        expect_reversed(kernel, type, width, GetParam());
      }
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Vector, CacheHints) {
  const std::pair<CacheHint, const char *> hints[] = {
      {CacheHint::streaming, ".cs"},
      {CacheHint::last_use, ".lu"},
      {CacheHint::no_allocate, ".L1::no_allocate"},
      {CacheHint::evict_first, ".L1::evict_first"},
      {CacheHint::evict_last, ".L1::evict_last"}};
  for (auto [hint, modifier] : hints) {
    Kernel kernel = reversed(f32, 4, hint);
    EXPECT_EQ(
        count(kernel.ptx, std::string("ld.global") + modifier + ".v4.b32"), 1);
    EXPECT_EQ(
        count(kernel.ptx, std::string("st.global") + modifier + ".v4.b32"),
        hint == CacheHint::last_use ? 0 : 1);
    expect_reversed(kernel, f32, 4, GetParam());
  }
  for (Type type : {u8, f16, bf16, i64})
    expect_reversed(reversed(type, 2, CacheHint::streaming), type, 2,
                    GetParam());
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Vector, HintsOfOneElement) {
  KernelBuilder kb("one", {.threads = 32});
  Tensor x = kb.tensor("x", f16, {32});
  Tensor y = kb.tensor("y", f16, {32});
  Value t = thread_id();
  y(t).store(x(t).load(CacheHint::streaming) + 1, CacheHint::no_allocate);
  Kernel kernel = compile_checked(kb.module());
  EXPECT_EQ(count(kernel.ptx, "ld.global.cs.b16"), 1);
  EXPECT_EQ(count(kernel.ptx, "st.global.L1::no_allocate.b16"), 1);
  EXPECT_TRUE(kernel.contract.arguments[1].is_output);
  OPEN_OR_SKIP(device);
  std::vector<double> numbers(32), expected(32);
  std::iota(numbers.begin(), numbers.end(), 0);
  std::iota(expected.begin(), expected.end(), 1);
  std::vector<std::uint8_t> in = elements(f16, numbers);
  std::vector<std::uint8_t> out = poisoned(f16, 32);
  run(device, kernel, in, out);
  EXPECT_EQ(values(f16, out), expected);
}

TEST_P(Vector, SharedTilesOfEverySwizzle) {
  for (Swizzle swizzle :
       {Swizzle::none, Swizzle::b32, Swizzle::b64, Swizzle::b128}) {
    KernelBuilder kb("tiles", {.threads = 128});
    Tensor y = kb.tensor("y", i32, {16, 32});
    SharedTile tile =
        kb.shared({.type = i32, .rows = 16, .columns = 32, .swizzle = swizzle});
    Value t = thread_id(), row = t / 8, column = t % 8 * 4;
    // Written by fours, read by twos and one by one.
    Value first = row * 32 + column;
    tile.store_vector(row, column, {first, first + 1, first + 2, first + 3});
    sync_threads();
    std::vector<Value> pair = tile.load_vector(15 - row, column, 2);
    y(15 - row, column) = pair[0];
    y(15 - row, column + 1) = pair[1];
    y(15 - row, column + 2) = tile(15 - row, column + 2);
    y(15 - row, column + 3) = tile(15 - row, column + 3);
    Kernel kernel = compile_checked(kb.module());
    EXPECT_EQ(count(kernel.ptx, "st.shared.v4.b32"), 1);
    EXPECT_EQ(count(kernel.ptx, "ld.shared.v2.b32") +
                  count(kernel.ptx, "ld.shared.v4.b32"),
              1);
    Device *device = conformance::open(GetParam()).device.get();
    if (!device)
      continue;
    std::vector<int> found(512, -1), expected(512);
    std::iota(expected.begin(), expected.end(), 0);
    run(*device, kernel, found);
    EXPECT_EQ(found, expected) << static_cast<int>(swizzle);
  }
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Vector, SixteenBytesOfSmallElements) {
  for (Type type : {i8, u8, e4m3, f16, bf16})
    for (CacheHint hint : {CacheHint::none, CacheHint::streaming}) {
      int width = 16 / size_bytes(type);
      KernelBuilder kb("wide", {.threads = 32});
      Tensor x = kb.tensor("x", type, {32, width});
      Tensor y = kb.tensor("y", type, {32, width});
      SharedTile tile = kb.shared({.type = type, .rows = 32, .columns = width});
      Value t = thread_id();
      tile.store_vector(t, 0, x.load_vector({t, 0}, width, hint));
      sync_threads();
      Values reversed = tile.load_vector(31 - t, 0, width);
      std::reverse(reversed.begin(), reversed.end());
      y.store_vector({31 - t, 0}, reversed, hint);
      Kernel kernel = compile_checked(kb.module());
      EXPECT_EQ(count(kernel.ptx, ".v4.b32"), 4) << name(type);
      Device *device = conformance::open(GetParam()).device.get();
      if (!device)
        continue;
      std::vector<double> numbers(32 * width), expected(32 * width);
      for (int i = 0; i < 32 * width; ++i)
        numbers[i] = i % 16;
      for (int i = 0; i < 32 * width; ++i)
        expected[i] = numbers[i / width * width + width - 1 - i % width];
      auto in = elements(type, numbers), out = poisoned(type, 32 * width);
      EXPECT_TRUE(try_run(*device, kernel, in, out).ok());
      EXPECT_EQ(values(type, out), expected) << name(type);
    }
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Vector, Arithmetic) {
  // Three elements: a pair and one that is left.
  for (Type type : {f16, bf16, f32, i32}) {
    KernelBuilder kb("arithmetic", {.threads = 1});
    Tensor x = kb.tensor("x", type, {2, 4});
    Tensor y = kb.tensor("y", type, {6, 3});
    Values a = x.load_vector({0, 0}, 4), b = x.load_vector({1, 0}, 4);
    a.pop_back(), b.pop_back();
    Values rows[] = {a + b, a - 1, a * b, min(a, b), max(a, 2), a * 2 + b};
    if (is_float(type))
      rows[5] = fma(a, 2, b);
    for (int i = 0; i < 6; ++i)
      for (int j = 0; j < 3; ++j)
        y(i, j) = rows[i][j];
    Kernel kernel = compile_checked(kb.module());
    std::string pair = type == f16 ? ".f16x2" : ".bf16x2";
    EXPECT_EQ(count(kernel.ptx, pair) > 0, size_bytes(type) == 2);
    Device *device = conformance::open(GetParam()).device.get();
    if (!device)
      continue;
    double left[] = {1, -2, 3}, right[] = {4, 5, -6};
    std::vector<double> expected;
    auto add = [&](auto value) {
      for (int i = 0; i < 3; ++i)
        expected.push_back(value(left[i], right[i]));
    };
    add([](double a, double b) { return a + b; });
    add([](double a, double) { return a - 1; });
    add([](double a, double b) { return a * b; });
    add([](double a, double b) { return std::min(a, b); });
    add([](double a, double) { return std::max(a, 2.0); });
    add([](double a, double b) { return a * 2 + b; });
    auto in = elements(type, {1, -2, 3, 0, 4, 5, -6, 0});
    auto out = poisoned(type, 18);
    run(*device, kernel, in, out);
    EXPECT_EQ(values(type, out), expected) << name(type);
  }
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Vector, EightBitFloatsToWiderTypes) {
  for (Type type : {e4m3, e5m2}) {
    KernelBuilder kb("widened", {.threads = 256});
    Tensor x = kb.tensor("x", type, {256});
    Tensor y = kb.tensor("y", f32, {256});
    Tensor z = kb.tensor("z", f16, {256});
    Value t = thread_id();
    y(t) = cast(x(t), f32);
    z(t) = cast(x(t), f16);
    Kernel kernel = compile_checked(kb.module());
    Device *device = conformance::open(GetParam()).device.get();
    if (!device)
      continue;
    std::vector<std::uint8_t> in(256), halves = poisoned(f16, 256);
    std::iota(in.begin(), in.end(), 0);
    std::vector<float> found(256, -1);
    run(*device, kernel, in, found, halves);
    std::vector<double> same = values(f16, halves);
    for (int i = 0; i < 256; ++i) {
      double expected = from_bits(type, i);
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(found[i]) && std::isnan(same[i])) << i;
        continue;
      }
      EXPECT_EQ(found[i], expected) << name(type) << " " << i;
      EXPECT_EQ(same[i], expected) << name(type) << " " << i;
    }
  }
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Vector, WiderTypesToEightBitFloats) {
  const std::vector<double> numbers = {0,    1,     -1,   0.3,  17,     -31.5,
                                       449,  -1e4,  0.01, 1e-4, 1.0625, 1.1875,
                                       3e-6, 57344, 6e4,  -0.2};
  for (Type type : {e4m3, e5m2})
    for (Type from : {f32, f16, i32}) {
      int n = static_cast<int>(numbers.size());
      KernelBuilder kb("narrowed", {.threads = n});
      Tensor x = kb.tensor("x", from, {n});
      Tensor y = kb.tensor("y", type, {2, n});
      Value t = thread_id();
      y(0, t) = cast(x(t), type);
      // The same by pairs.
      Values pair = cast(Values{x(t), x(n - 1 - t)}, type);
      y(1, n - 1 - t) = pair[1];
      Kernel kernel = compile_checked(kb.module());
      Device *device = conformance::open(GetParam()).device.get();
      if (!device)
        continue;
      auto in = elements(from, numbers), out = poisoned(type, 2 * n);
      std::vector<double> exact = values(from, in);
      run(*device, kernel, in, out);
      for (int i = 0; i < n; ++i) {
        auto expected = static_cast<std::uint8_t>(to_bits(type, exact[i]));
        EXPECT_EQ(out[i], expected) << name(from) << " " << exact[i];
        EXPECT_EQ(out[n + i], expected) << name(from) << " " << exact[i];
      }
    }
  SKIP_WITHOUT_DEVICE();
}
