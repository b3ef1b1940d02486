// Vector: several elements in one instruction, and cache hints.
#include "Conformance.h"

#include <algorithm>
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
  EXPECT_TRUE(run(*device, kernel, in, out).ok());
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
