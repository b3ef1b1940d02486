// FillRandom: the same numbers everywhere, within their ends.
#include "kiln/base/random.h"

#include "ErrorText.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <numeric>

using namespace kiln;

static double elementOf(Type type, const void *data, std::int64_t i) {
  std::uint64_t bits = 0;
  int bytes = size_bytes(type);
  std::memcpy(&bits, static_cast<const std::byte *>(data) + i * bytes,
              static_cast<std::size_t>(bytes));
  return from_bits(type, bits);
}

// The first numbers of the generator, by its published code for seed 0.
TEST(FillRandom, IsSplitMix64) {
  std::vector<double> x(3);
  fill_random(Type::f64, x.data(), 3, 0, 0, 1);
  EXPECT_EQ(x[0], double(0xe220a8397b1dcdafull >> 11) * 0x1p-53);
  EXPECT_EQ(x[1], double(0x6e789e6aa1b965f4ull >> 11) * 0x1p-53);
  EXPECT_EQ(x[2], double(0x06c45d188009454full >> 11) * 0x1p-53);
}

TEST(FillRandom, DependsOnSeedAndPlaceAlone) {
  std::vector<float> x(200000), y(1000), z(1000);
  fill_random(Type::f32, x.data(), x.size(), 5);
  fill_random(Type::f32, y.data(), y.size(), 5);
  fill_random(Type::f32, z.data(), z.size(), 6);
  EXPECT_TRUE(std::equal(y.begin(), y.end(), x.begin()));
  EXPECT_NE(y, z);
  double mean = std::accumulate(x.begin(), x.end(), 0.0) / 200000;
  EXPECT_NEAR(mean, 0, 0.01);
}

TEST(FillRandom, StaysBelowTheUpperEnd) {
  for (Type type :
       {Type::f16, Type::bf16, Type::e4m3, Type::e5m2, Type::tf32, Type::f32}) {
    for (auto [lo, hi] :
         {std::pair{-1.0, 1.0}, std::pair{-2.0, -1.0}, std::pair{-1.0, 0.0}}) {
      std::vector<std::uint32_t> x(20000);
      fill_random(type, x.data(), x.size(), 3, lo, hi);
      for (std::int64_t i = 0; i < std::ssize(x); ++i) {
        double value = elementOf(type, x.data(), i);
        ASSERT_GE(value, lo) << name(type);
        ASSERT_LT(value, hi) << name(type);
      }
    }
  }
}

TEST(FillRandom, IntegersIncludeBothEnds) {
  std::vector<std::int8_t> x(1000);
  fill_random(Type::i8, x.data(), x.size(), 3, -2, 2);
  auto [least, most] = std::minmax_element(x.begin(), x.end());
  EXPECT_EQ(*least, -2);
  EXPECT_EQ(*most, 2);
}

TEST(FillRandom, RefusesEndsInTheWrongOrder) {
  float x = 0;
  EXPECT_EQ(errorText([&] { fill_random(Type::f32, &x, 1, 0, 2, 1); }),
            "random numbers from 2 to 1: the first must not be larger");
}

TEST(FillNormal, HasTheMomentsOfTheDistribution) {
  for (Type type : {Type::f32, Type::f16, Type::bf16, Type::e4m3}) {
    std::vector<std::uint32_t> x(400003);
    fill_normal(type, x.data(), x.size(), 7);
    double mean = 0, square = 0, fourth = 0, beyond = 0;
    for (std::int64_t i = 0; i < std::ssize(x); ++i) {
      double value = elementOf(type, x.data(), i);
      mean += value / std::ssize(x);
      square += value * value / std::ssize(x);
      fourth += std::pow(value, 4) / std::ssize(x);
      beyond += (std::fabs(value) > 2) / double(std::ssize(x));
    }
    SCOPED_TRACE(name(type));
    EXPECT_NEAR(mean, 0, 0.01);
    EXPECT_NEAR(square, 1, 0.02);
    EXPECT_NEAR(fourth, 3, 0.1);
    EXPECT_NEAR(beyond, 0.0455, 0.015); // the steps of e4m3 are wide
  }
}

TEST(FillNormal, DependsOnSeedAndPlaceAlone) {
  std::vector<float> x(200000), y(1001), z(1001);
  fill_normal(Type::f32, x.data(), x.size(), 5);
  fill_normal(Type::f32, y.data(), y.size(), 5);
  fill_normal(Type::f32, z.data(), z.size(), 6);
  EXPECT_TRUE(std::equal(y.begin(), y.end(), x.begin()));
  EXPECT_NE(y, z);
}

TEST(FillNormal, IntegersTakeTheirWholeRange) {
  std::vector<std::uint8_t> x(100000);
  fill_normal(Type::u8, x.data(), x.size(), 3);
  std::array<int, 256> seen{};
  for (std::uint8_t value : x)
    ++seen[value];
  for (int count : seen)
    EXPECT_NEAR(count, 100000 / 256, 120);
}
