// Math: each function against the host's, within the error its header states.
#include "conformance/Conformance.h"

#include <kiln/run/run.h>

#include <bit>
#include <cmath>

using namespace conformance;

class Math : public OnDevice {};
INSTANTIATE_ON_DEVICES(Math);

static constexpr int kThreads = 64;

namespace {
/// A function of f32, its instruction, and the error it may have at y = f(x).
struct Function {
  const char *instruction;
  Value (*in_kernel)(At);
  double (*on_host)(double);
  double least, most; ///< where it is tried
  double (*error)(double x, double y);
};
} // namespace

/// A function as a kernel calls it.
#define OF_KILN(function) [](At x) { return kiln::function(x); }

/// Relative to the result, 2^-22: what one or two last places are at most.
static double last_places(double, double y) {
  return std::abs(y) * std::ldexp(1, -21);
}

static const Function kFunctions[] = {
    {"sqrt.approx.f32", OF_KILN(sqrt), std::sqrt, 0.01, 1e6, last_places},
    {"rsqrt.approx.f32", OF_KILN(rsqrt),
     [](double x) { return 1 / std::sqrt(x); }, 0.01, 1e6, last_places},
    {"rcp.approx.f32", OF_KILN(rcp), [](double x) { return 1 / x; }, 0.01, 1e6,
     last_places},
    {"ex2.approx.f32", OF_KILN(exp2), std::exp2, -20, 20, last_places},
    {"lg2.approx.f32", OF_KILN(log2), std::log2, 0.01, 1e6,
     [](double x, double y) {
       return std::ldexp(x > 0.5 && x < 2 ? 1 : std::abs(y), -21);
     }},
    {"tanh.approx.f32", OF_KILN(tanh), std::tanh, -4, 4,
     [](double, double y) { return std::abs(y) * std::exp2(-10.9); }},
    {"sin.approx.f32", OF_KILN(sin), std::sin, -6.28, 6.28,
     [](double, double) { return std::exp2(-20.5); }},
    {"cos.approx.f32", OF_KILN(cos), std::cos, -6.28, 6.28,
     [](double, double) { return std::exp2(-20.5); }},
};

TEST_P(Math, SpecialFunctions) {
  for (const Function &function : kFunctions) {
    KernelBuilder kb("special", {.threads = kThreads});
    Tensor x = kb.tensor("x", f32, {kThreads});
    Tensor y = kb.tensor("y", f32, {kThreads});
    Value i = thread_id();
    y(i) = function.in_kernel(x(i));
    Kernel kernel = compile_checked(kb.module());
    EXPECT_EQ(count(kernel.ptx, function.instruction), 1);
    Device *device = conformance::open(GetParam()).device.get();
    if (!device)
      continue;
    std::vector<float> in(kThreads), found(kThreads, -99);
    for (int k = 0; k < kThreads; ++k)
      in[k] = static_cast<float>(
          function.least + (function.most - function.least) * k / kThreads);
    run(*device, kernel, in, found);
    for (int k = 0; k < kThreads; ++k) {
      double expected = function.on_host(in[k]);
      EXPECT_NEAR(found[k], expected, function.error(in[k], expected))
          << function.instruction << " of " << in[k];
    }
  }
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Math, SubnormalNumbersAreFlushedWhereAsked) {
  // 2^-130 as an operand, and as a result of 2^x.
  auto in_kernel = [](bool is_kernel_wide, bool is_in_call) {
    KernelBuilder kb("flush", {.threads = 1, .ftz = is_kernel_wide});
    Tensor x = kb.tensor("x", f32, {2}), y = kb.tensor("y", f32, {3});
    Value tiny = x(0), exponent = x(1);
    MathOptions options;
    if (is_in_call)
      options.ftz = true;
    y(0) = kiln::exp2(exponent, options);
    y(1) = kiln::sqrt(tiny, options);
    y(2) = tiny * 0.5 + tiny;
    return compile_checked(kb.module());
  };
  auto expect = [&](bool is_kernel_wide, bool is_in_call,
                    std::vector<float> wanted) {
    Kernel kernel = in_kernel(is_kernel_wide, is_in_call);
    bool is_flushed = is_kernel_wide || is_in_call;
    EXPECT_EQ(count(kernel.ptx, "ex2.approx.ftz.f32"), is_flushed);
    EXPECT_EQ(count(kernel.ptx, "sqrt.approx.ftz.f32"), is_flushed);
    Device *device = conformance::open(GetParam()).device.get();
    if (!device)
      return;
    std::vector<float> in = {0x1p-130f, -130}, found(3, -99);
    run(*device, kernel, in, found);
    EXPECT_EQ(found, wanted) << is_kernel_wide << is_in_call;
  };
  expect(false, false, {0x1p-130f, 0x1p-65f, 0x3p-131f});
  expect(false, true, {0, 0, 0x3p-131f});
  expect(true, false, {0, 0, 0});
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Math, FastDivision) {
  KernelBuilder kb("fast", {.threads = kThreads});
  Tensor x = kb.tensor("x", f32, {kThreads}),
         y = kb.tensor("y", f32, {kThreads});
  Value i = thread_id();
  y(i) = fast_divide(x(i), cast(i + 3, f32));
  Kernel kernel = compile_checked(kb.module());
  EXPECT_EQ(count(kernel.ptx, "div.approx.f32"), 1);
  OPEN_OR_SKIP(device);
  std::vector<float> in(kThreads), found(kThreads, -99);
  for (int k = 0; k < kThreads; ++k)
    in[k] = static_cast<float>(k * k + 1);
  run(device, kernel, in, found);
  for (int k = 0; k < kThreads; ++k)
    EXPECT_NEAR(found[k], in[k] / (k + 3.0), last_places(0, in[k] / (k + 3.0)));
}

TEST_P(Math, WhatIsNotUsedIsNotComputed) {
  KernelBuilder kb("unused", {.threads = 1});
  Tensor x = kb.tensor("x", f32, {1});
  kiln::exp2(x(0));
  x(0) = kiln::sqrt(x(0));
  Kernel kernel = compile_checked(kb.module());
  EXPECT_EQ(count(kernel.ptx, "ex2.approx"), 0);
  EXPECT_EQ(count(kernel.ptx, "sqrt.approx"), 1);
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Math, AbsOfFloatsAndSignedIntegers) {
  for (Type type : {f16, bf16, f32, f64, i8, i16, i32, i64}) {
    KernelBuilder kb("magnitude", {.threads = 4});
    Tensor x = kb.tensor("x", type, {4});
    Value i = thread_id();
    x(i) = kiln::abs(x(i));
    Kernel kernel = compile_checked(kb.module());
    Device *device = conformance::open(GetParam()).device.get();
    if (!device)
      continue;
    std::vector<std::uint8_t> data = elements(type, {-3, 0, 5, -100});
    run(*device, kernel, data);
    EXPECT_EQ(values(type, data), (std::vector<double>{3, 0, 5, 100}))
        << name(type);
  }
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Math, FmaRoundsOnce) {
  for (Type type : {f16, bf16, f32, f64}) {
    KernelBuilder kb("fused", {.threads = 1});
    Tensor x = kb.tensor("x", type, {3});
    Tensor y = kb.tensor("y", type, {2});
    Value a = x(0);
    y(0) = kiln::fma(a, x(1), x(2));
    y(1) = kiln::fma(a, 2, 0.5);
    Kernel kernel = compile_checked(kb.module());
    EXPECT_EQ(count(kernel.ptx, "fma.rn."), 2) << name(type);
    Device *device = conformance::open(GetParam()).device.get();
    if (!device)
      continue;
    // (1 + e)(1 - e) - 1 is -e^2; rounded after the product it would be 0.
    int digits = type == f16 ? 8 : type == bf16 ? 5 : type == f32 ? 20 : 40;
    double e = std::ldexp(1, -digits);
    std::vector<std::uint8_t> in = elements(type, {1 + e, 1 - e, -1});
    std::vector<std::uint8_t> found = poisoned(type, 2);
    run(*device, kernel, in, found);
    EXPECT_EQ(values(type, found)[0], -e * e) << name(type);
    EXPECT_EQ(values(type, found)[1],
              from_bits(type, to_bits(type, 2 * (1 + e) + 0.5)));
  }
  SKIP_WITHOUT_DEVICE();
}

namespace {
/// popcount, count_leading_zeros and reverse_bits of `in` as a type.
template <typename T> void expect_bits(Type type, const std::string &id) {
  KernelBuilder kb("bits", {.threads = 8});
  Tensor x = kb.tensor("x", type, {8});
  Tensor y = kb.tensor("y", type, {3, 8});
  Value i = thread_id();
  y(0, i) = popcount(x(i));
  y(1, i) = count_leading_zeros(x(i));
  y(2, i) = reverse_bits(x(i));
  Kernel kernel = compile_checked(kb.module());
  EXPECT_EQ(count(kernel.ptx, "popc.b"), 1);
  EXPECT_EQ(count(kernel.ptx, "clz.b"), 1);
  EXPECT_EQ(count(kernel.ptx, "brev.b"), 1);
  Device *device = conformance::open(id).device.get();
  if (!device)
    return;
  std::vector<T> in = {0,  1, T(~T{0}), 5, 100, T(T{1} << (8 * sizeof(T) - 1)),
                       77, 31};
  std::vector<T> found(24, 99), expected(24);
  for (int k = 0; k < 8; ++k) {
    expected[k] = static_cast<T>(std::popcount(in[k]));
    expected[8 + k] = static_cast<T>(std::countl_zero(in[k]));
    for (std::size_t bit = 0; bit < 8 * sizeof(T); ++bit)
      expected[16 + k] =
          static_cast<T>(expected[16 + k] << 1 | (in[k] >> bit & 1));
  }
  run(*device, kernel, in, found);
  EXPECT_EQ(found, expected) << name(type);
}
} // namespace

TEST_P(Math, BitsOfIntegers) {
  expect_bits<std::uint8_t>(u8, GetParam());
  expect_bits<std::uint16_t>(u16, GetParam());
  expect_bits<std::uint32_t>(u32, GetParam());
  expect_bits<std::uint32_t>(i32, GetParam());
  expect_bits<std::uint64_t>(u64, GetParam());
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Math, BitcastKeepsTheBits) {
  KernelBuilder kb("same_bits", {.threads = 1});
  Tensor words = kb.tensor("words", u32, {2});
  Tensor wide = kb.tensor("wide", i64, {1});
  Tensor half = kb.tensor("half", u16, {1});
  words(0) = bitcast(constant(f32, -1.5), u32);
  words(1) = bitcast(bitcast(words(1), f32) * 2, u32);
  wide(0) = bitcast(constant(f64, 0.1), i64);
  half(0) = bitcast(bitcast(half(0), bf16) + 1, u16);
  Kernel kernel = compile_checked(kb.module());
  OPEN_OR_SKIP(device);
  std::vector<std::uint32_t> words_data = {0,
                                           std::bit_cast<std::uint32_t>(3.f)};
  std::vector<std::int64_t> wide_data = {0};
  std::vector<std::uint16_t> half_data = {0x4000}; // 2 as bf16
  run(device, kernel, words_data, wide_data, half_data);
  EXPECT_EQ(words_data[0], std::bit_cast<std::uint32_t>(-1.5f));
  EXPECT_EQ(words_data[1], std::bit_cast<std::uint32_t>(6.f));
  EXPECT_EQ(wide_data[0], std::bit_cast<std::int64_t>(0.1));
  EXPECT_EQ(half_data[0], 0x4040); // 3
}

static const std::vector<Rounding> kRoundings = {Rounding::nearest_even,
                                                 Rounding::toward_zero,
                                                 Rounding::down, Rounding::up};

/// `value` rounded to a multiple of `unit`.
static double round_to(double value, double unit, Rounding rounding) {
  double scaled = value / unit;
  switch (rounding) {
  case Rounding::nearest_even:
    return std::nearbyint(scaled) * unit;
  case Rounding::toward_zero:
    return std::trunc(scaled) * unit;
  case Rounding::down:
    return std::floor(scaled) * unit;
  case Rounding::up:
    return std::ceil(scaled) * unit;
  case Rounding::nearest_away:
    return std::round(scaled) * unit;
  }
  return 0;
}

/// Cast `numbers` in all roundings; `unit` is the last place of the result.
static void
expect_roundings(Type from, Type to, const std::string &id,
                 const std::vector<double> &numbers, double unit,
                 const std::vector<Rounding> &roundings = kRoundings) {
  int n = static_cast<int>(numbers.size());
  int count_of = static_cast<int>(roundings.size());
  KernelBuilder kb("roundings", {.threads = n});
  Tensor x = kb.tensor("x", from, {n});
  Tensor y = kb.tensor("y", to, {count_of, n});
  Value i = thread_id();
  for (int k = 0; k < count_of; ++k)
    y(k, i) = cast(x(i), to, roundings[k]);
  Kernel kernel = compile_checked(kb.module());
  EXPECT_EQ(count(kernel.ptx, "cvt.rn."), is_float(to) ? 1 : 0);
  EXPECT_EQ(count(kernel.ptx, "cvt.rzi"), is_float(to) ? 0 : 1);
  Device *device = conformance::open(id).device.get();
  if (!device)
    return;
  std::vector<std::uint8_t> in = elements(from, numbers);
  std::vector<std::uint8_t> out = poisoned(to, count_of * n);
  run(*device, kernel, in, out);
  std::vector<double> found = values(to, out);
  for (int k = 0; k < count_of * n; ++k)
    EXPECT_EQ(found[k], round_to(numbers[k % n], unit, roundings[k / n]))
        << name(from) << " " << numbers[k % n] << " to " << name(to)
        << ", rounding " << k / n;
}

TEST_P(Math, CastsWithARounding) {
  std::vector<double> reals = {-2.5, -1.75, -0.5, 0.5, 1.5, 2.25, 3.5, 100.75};
  std::vector<double> positive = {0, 0.5, 1.5, 2.25, 3.5, 7, 8.75, 100.25};
  for (Type from : {f32, f64}) {
    expect_roundings(from, i32, GetParam(), reals, 1);
    expect_roundings(from, i64, GetParam(), reals, 1);
    expect_roundings(from, u32, GetParam(), positive, 1);
    expect_roundings(from, u64, GetParam(), positive, 1);
  }
  // Between 2^24 and 2^25 an f32 has the even integers.
  std::vector<double> wide = {16777217, 16777219, 16777220, 33554431};
  expect_roundings(i32, f32, GetParam(), wide, 2);
  expect_roundings(u32, f32, GetParam(), wide, 2);
  expect_roundings(i64, f32, GetParam(), {-16777217, -16777219}, 2);
  expect_roundings(u64, f32, GetParam(), wide, 2);
  expect_roundings(f64, f32, GetParam(), {1.00000001, 1.99999999},
                   std::ldexp(1, -23));
  std::vector<double> fine = {1.00011, 1.5001, 1.99999, 1.25};
  for (double &number : fine)
    number = static_cast<float>(number);
  expect_roundings(f32, f16, GetParam(), fine, std::ldexp(1, -10));
  expect_roundings(f32, bf16, GetParam(), fine, std::ldexp(1, -7));
  fine.push_back(1 + std::ldexp(5, -11)); // in the middle
  expect_roundings(
      f32, tf32, GetParam(), fine, std::ldexp(1, -10),
      {Rounding::nearest_even, Rounding::toward_zero, Rounding::nearest_away});
  SKIP_WITHOUT_DEVICE();
}
