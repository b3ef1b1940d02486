// AlignedSum: held against a model of its own, in whole numbers from the bits
// of the operands, written from the text of Khattak and Mikaitis (arXiv
// 2512.07004). What an H200 answers is in tests/golden.
#include "sim/units/matrix/AlignedSum.h"
#include "Draws.h"
#include "support/Half.h"

#include <bit>
#include <gtest/gtest.h>
#include <cmath>
#include <random>

namespace kiln::sim {
namespace {

struct Format {
  OperandType type;
  int exponentBits, fractionBits;
  bool hasInfinity = true;
  int bias() const { return (1 << (exponentBits - 1)) - 1; }
  int bits() const { return 1 + exponentBits + fractionBits; }
};

constexpr Format kF16{OperandType::f16, 5, 10};
constexpr Format kBf16{OperandType::bf16, 8, 7};
constexpr Format kTf32{OperandType::tf32, 8, 10};
constexpr Format kE4m3{OperandType::e4m3, 4, 3, false};
constexpr Format kE5m2{OperandType::e5m2, 5, 2};
constexpr Format kF32{OperandType::tf32, 8, 23};

/// sign * significand * 2^(exponent - fractionBits)
struct Parts {
  bool isNegative;
  std::int64_t significand;
  int exponent;
};

Parts partsOf(const Format &format, std::uint32_t bits) {
  auto field = static_cast<int>(bits >> format.fractionBits &
                                ((1u << format.exponentBits) - 1));
  std::int64_t fraction = bits & ((1u << format.fractionBits) - 1);
  bool isNegative = bits >> (format.bits() - 1) & 1;
  if (field == 0)
    return {isNegative, fraction, 1 - format.bias()};
  return {isNegative, fraction | std::int64_t(1) << format.fractionBits,
          field - format.bias()};
}

float valueOf(const Format &format, std::uint32_t bits) {
  Parts parts = partsOf(format, bits);
  double value = std::ldexp(static_cast<double>(parts.significand),
                            parts.exponent - format.fractionBits);
  return static_cast<float>(parts.isNegative ? -value : value);
}

/// A sum of whole numbers of 2^unit as a float whose significand has `kept`
/// bits behind the point, the others cut off.
std::uint32_t cutOff(std::int64_t sum, int unit, int kept) {
  if (sum == 0)
    return 0;
  std::uint32_t sign = sum < 0 ? 0x80000000u : 0;
  auto size = static_cast<std::uint64_t>(std::abs(sum));
  int exponent = static_cast<int>(std::bit_width(size)) - 1 + unit;
  if (exponent > 127)
    return sign | 0x7f800000u;
  int last = std::max(exponent, -126) - kept; // of its bits that count
  if (last > unit)
    size = last - unit < 64 ? size >> (last - unit) << (last - unit) : 0;
  // Exact now.
  auto value = static_cast<float>(std::ldexp(static_cast<double>(size), unit));
  return std::bit_cast<std::uint32_t>(value) | sign;
}

/// The same to the nearest f16, ties to even; what becomes zero is positive.
std::uint16_t nearestHalf(std::int64_t sum, int unit) {
  if (sum == 0)
    return 0;
  auto size = static_cast<std::uint64_t>(std::abs(sum));
  int exponent =
      std::max(static_cast<int>(std::bit_width(size)) - 1 + unit, -14);
  int last = exponent - 10, shift = last - unit;
  std::uint64_t rounded = size;
  if (shift > 63)
    rounded = 0;
  else if (shift > 0) {
    std::uint64_t rest = size & ((std::uint64_t(1) << shift) - 1);
    std::uint64_t half = std::uint64_t(1) << (shift - 1);
    rounded = size >> shift;
    rounded += rest > half || (rest == half && (rounded & 1));
  } else
    rounded = size << -shift;
  if (rounded == 0)
    return 0;
  std::uint64_t bits =
      rounded + (static_cast<std::uint64_t>(exponent + 14) << 10);
  bits = std::min<std::uint64_t>(bits, 0x7c00);
  return static_cast<std::uint16_t>(bits | (sum < 0 ? 0x8000 : 0));
}

struct Case {
  Format a, b;
  int k, fractionBits, keptBits;
  bool isHalf;
};

/// What the text says: align to the largest exponent, cut off, add, cut off.
std::uint32_t modelSum(const Case &test, const std::vector<std::uint32_t> &a,
                       const std::vector<std::uint32_t> &b, std::uint32_t c) {
  const Format &formatC = test.isHalf ? kF16 : kF32;
  struct Addend {
    Parts parts;
    int fraction;
  };
  std::vector<Addend> addends = {{partsOf(formatC, c), formatC.fractionBits}};
  for (std::size_t i = 0; i < a.size(); ++i) {
    Parts x = partsOf(test.a, a[i]), y = partsOf(test.b, b[i]);
    addends.push_back({{x.isNegative != y.isNegative,
                        x.significand * y.significand, x.exponent + y.exponent},
                       test.a.fractionBits + test.b.fractionBits});
  }
  int largest = INT32_MIN;
  for (const Addend &addend : addends)
    if (addend.parts.significand)
      largest = std::max(largest, addend.parts.exponent);
  if (largest == INT32_MIN)
    return 0;
  int unit = largest - test.fractionBits;
  std::int64_t sum = 0;
  for (const Addend &addend : addends) {
    int shift = unit - (addend.parts.exponent - addend.fraction);
    std::int64_t kept = shift > 63   ? 0
                        : shift >= 0 ? addend.parts.significand >> shift
                                     : addend.parts.significand << -shift;
    sum += addend.parts.isNegative ? -kept : kept;
  }
  return test.isHalf ? nearestHalf(sum, unit)
                     : cutOff(sum, unit, test.keptBits);
}

/// Bits of a finite number whose exponent is at most `spread` from 1's, or,
/// with 0, in the lower part of the range.
std::uint32_t drawBits(std::mt19937_64 &random, const Format &format,
                       int spread) {
  auto bits = static_cast<std::uint32_t>(random());
  int highest = (1 << format.exponentBits) - (format.hasInfinity ? 2 : 1);
  int low = std::max(0, format.bias() - spread);
  int high = std::min(highest, format.bias() + spread);
  if (spread == 0) {
    low = 0;
    high = format.bias() / 2 + 1;
  }
  auto field = static_cast<std::uint32_t>(
      low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1)));
  std::uint32_t fraction = bits & ((1u << format.fractionBits) - 1);
  if (!format.hasInfinity && field == 15 && fraction == 7)
    fraction = 6; // a NaN
  return (bits >> 31) << (format.bits() - 1) | field << format.fractionBits |
         fraction;
}

void hold(const Case &test, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  constexpr int kColumns = 24, kLines = 5;
  int products = draws(840); // of 120 sums each
  for (int round = 0; round < products; ++round) {
    int spread = std::array{2, 8, 40, 140, 0}[round % 5];
    auto k = static_cast<std::size_t>(test.k);
    std::vector<std::uint32_t> a(kLines * k), b(k * kColumns),
        c(kLines * kColumns);
    for (auto &bits : a)
      bits = drawBits(random, test.a, spread);
    for (auto &bits : b)
      bits = drawBits(random, test.b, spread);
    const Format &formatC = test.isHalf ? kF16 : kF32;
    for (auto &bits : c)
      bits = drawBits(random, formatC, spread);
    // Every other round cancels.
    for (std::size_t i = 1; i < a.size() && round % 2; i += 2)
      a[i] = a[i - 1] ^ 1u << (test.a.bits() - 1);
    for (std::size_t i = 0; i < b.size() && round % 2; ++i)
      if (i / kColumns % 2)
        b[i] = b[i - kColumns] ^ (random() % 4 == 0);
    std::vector<float> x, y, sums;
    for (std::uint32_t bits : a)
      x.push_back(valueOf(test.a, bits));
    for (std::uint32_t bits : b)
      y.push_back(valueOf(test.b, bits));
    for (std::uint32_t bits : c)
      sums.push_back(valueOf(formatC, bits));
    addAligned({.fractionBits = test.fractionBits,
                .keptBits = test.keptBits,
                .isRoundedAfter = test.isHalf,
                .leastX = leastNormal(test.a.type),
                .leastY = leastNormal(test.b.type)},
               {.lines = kLines,
                .columns = kColumns,
                .k = test.k,
                .x = x.data(),
                .lineStep = test.k,
                .step = 1,
                .y = y.data(),
                .pitch = kColumns},
               sums.data(), kColumns);
    for (std::size_t i = 0; i < sums.size(); ++i) {
      std::vector<std::uint32_t> left, right;
      for (std::size_t inner = 0; inner < k; ++inner) {
        left.push_back(a[i / kColumns * k + inner]);
        right.push_back(b[inner * kColumns + i % kColumns]);
      }
      std::uint32_t want = modelSum(test, left, right, c[i]);
      std::uint32_t got = test.isHalf ? roundToHalf(sums[i])
                                      : std::bit_cast<std::uint32_t>(sums[i]);
      ASSERT_EQ(got, want) << std::hex << "round " << round << ", sum " << i;
    }
  }
}

TEST(AlignedSum, OfHalves) {
  hold({kF16, kF16, 16, 25, 23, false}, 1);
  hold({kF16, kF16, 8, 25, 23, false}, 2);
  hold({kF16, kF16, 16, 25, 23, true}, 3);
  hold({kBf16, kBf16, 16, 25, 23, false}, 4);
}
TEST(AlignedSum, OfTf32) { hold({kTf32, kTf32, 8, 25, 23, false}, 5); }
TEST(AlignedSum, OfEightBitsOnHopper) {
  hold({kE4m3, kE4m3, 32, 13, 13, false}, 6);
  hold({kE5m2, kE4m3, 32, 13, 13, false}, 7);
  hold({kE5m2, kE5m2, 32, 13, 23, true}, 8);
}
TEST(AlignedSum, OfEightBitsOnBlackwell) {
  hold({kE4m3, kE5m2, 32, 25, 23, false}, 9);
  hold({kE5m2, kE5m2, 32, 25, 23, true}, 10);
}

TEST(AlignedSum, OfTheLargestProducts) {
  for (int k : {16, 32, 64}) {
    std::vector<float> x(static_cast<std::size_t>(k), 1.875f);
    std::vector<float> y(static_cast<std::size_t>(k) * 8, 1.875f), sums(8, 1);
    addAligned({.leastX = 0x1p-6f, .leastY = 0x1p-6f},
               {.lines = 1,
                .columns = 8,
                .k = k,
                .x = x.data(),
                .lineStep = k,
                .step = 1,
                .y = y.data(),
                .pitch = 8},
               sums.data(), 8);
    EXPECT_EQ(sums[3], static_cast<float>(k) * 1.875f * 1.875f + 1);
  }
}

// More than an integer of 32 bits has room for, on either side.
TEST(AlignedSum, OfTheLargestProductsAndWhatWasThere) {
  const float most = 0x1.ffcp0f; // of an f16 with that exponent
  for (float sign : {1.0f, -1.0f}) {
    std::vector<float> x(16, most), y(16 * 8, sign * most), sums(8, sign * most);
    addAligned({.leastX = 0x1p-14f, .leastY = 0x1p-14f},
               {.lines = 1,
                .columns = 8,
                .k = 16,
                .x = x.data(),
                .lineStep = 16,
                .step = 1,
                .y = y.data(),
                .pitch = 8},
               sums.data(), 8);
    double exact = 16.0 * most * most + most;
    double bit = 0x1p-17; // of 24 bits
    EXPECT_EQ(sums[3], sign * std::floor(exact / bit) * bit);
  }
}

TEST(AlignedSum, InOrderIsOneAfterAnother) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  std::vector<float> x(3 * 16), y(16 * 24), sums(3 * 24), wanted(3 * 24);
  for (std::vector<float> *all : {&x, &y, &sums})
    for (float &value : *all)
      value = normal(random);
  for (int line = 0; line < 3; ++line)
    for (int column = 0; column < 24; ++column) {
      float sum = sums[line * 24 + column];
      for (int inner = 0; inner < 16; ++inner) {
        float product = x[line * 16 + inner] * y[inner * 24 + column];
        sum += product;
      }
      wanted[line * 24 + column] = sum;
    }
  addAligned({.isInOrder = true},
             {.lines = 3,
              .columns = 24,
              .k = 16,
              .x = x.data(),
              .lineStep = 16,
              .step = 1,
              .y = y.data(),
              .pitch = 24},
             sums.data(), 24);
  // The host may multiply and add in one rounding.
  for (std::size_t i = 0; i < sums.size(); ++i)
    EXPECT_NEAR(sums[i], wanted[i], 1e-5f);
}

TEST(AlignedSum, OfTheLeastProducts) {
  std::vector<float> x(16, 0x1p-75f), y(16 * 8, 0x1p-75f), sums(8, 0);
  addAligned({.leastX = 0x1p-126f, .leastY = 0x1p-126f},
             {.lines = 1,
              .columns = 8,
              .k = 16,
              .x = x.data(),
              .lineStep = 16,
              .step = 1,
              .y = y.data(),
              .pitch = 8},
             sums.data(), 8);
  EXPECT_EQ(sums[3], 0x1p-146f);
}

TEST(AlignedSum, RoundsToPositiveZero) {
  EXPECT_EQ(roundToHalf(-0x1p-30f), 0);
  EXPECT_EQ(roundToHalf(-0x1p-24f), 0x8001);
}

TEST(AlignedSum, OfWhatIsNoNumber) {
  auto sumOf = [](float a, float b, float c) {
    std::vector<float> x(8, 0.0f), y(64, 1.0f), sums(8, c);
    x[3] = a;
    std::fill_n(y.begin() + 24, 8, b);
    addAligned({.leastX = 0x1p-126f, .leastY = 0x1p-126f},
               {.lines = 1,
                .columns = 8,
                .k = 8,
                .x = x.data(),
                .lineStep = 8,
                .step = 1,
                .y = y.data(),
                .pitch = 8},
               sums.data(), 8);
    return std::bit_cast<std::uint32_t>(sums[5]);
  };
  EXPECT_EQ(sumOf(INFINITY, 2, 1), 0x7f800000u);
  EXPECT_EQ(sumOf(INFINITY, -2, 1), 0xff800000u);
  EXPECT_EQ(sumOf(INFINITY, 0, 1), 0x7fffffffu);
  EXPECT_EQ(sumOf(INFINITY, 1, -INFINITY), 0x7fffffffu);
  EXPECT_EQ(sumOf(1, 1, NAN), 0x7fffffffu);
  EXPECT_EQ(sumOf(0x1p100f, 0x1p100f, 0), 0x7f800000u);
  EXPECT_EQ(sumOf(-0.0f, 1, -0.0f), 0u); // a sum of zeros is positive
}

} // namespace
} // namespace kiln::sim
