// CorpusArithmetic: halves, eight-bit floats, doubles, special functions and
// 64-bit integers, as nvcc and its library compute them.
#include "corpus/RunCorpus.h"
#include "sim/units/scalar/Conversion.h"
#include "support/Half.h"

#include <cmath>

namespace kiln {

static float rounded(float value) { return halfToFloat(floatToHalf(value)); }

TEST(CorpusArithmetic, PairsOfHalves) {
  constexpr int kPairs = 100;
  RunCorpus run("arithmetic.ptx");
  std::vector<std::uint16_t> a, b;
  for (float value : randomNumbers<float>(2 * kPairs, -4, 4))
    a.push_back(floatToHalf(value));
  for (float value : randomNumbers<float>(2 * kPairs, -4, 4))
    b.push_back(floatToHalf(value));
  Buffer to = run.empty<std::uint16_t>(8 * kPairs);
  run.run("half_pairs", {1, 1, 1}, {128, 1, 1}, 0, run.buffer(a), run.buffer(b),
          to, kPairs);
  auto out = run.read<std::uint16_t>(to, 8 * kPairs);
  for (int i = 0; i < 2 * kPairs; ++i) {
    float x = halfToFloat(a[i]), y = halfToFloat(b[i]);
    auto result = [&](int which) {
      return halfToFloat(out[i / 2 * 8 + which * 2 + i % 2]);
    };
    // The sum of a product and a half is exact in double.
    double both = double(rounded(x + y)) * rounded(x * y) + x;
    EXPECT_EQ(result(0), std::fabs(rounded(toOddFloat(both))));
    EXPECT_EQ(result(1), rounded(std::fabs(x) - std::fmin(x, y)));
    EXPECT_EQ(result(2), x > y ? 1.0f : 0.0f);
    EXPECT_EQ(result(3), rounded(i % 2 ? y : x * 2));
  }
}

TEST(CorpusArithmetic, Conversions) {
  RunCorpus run("arithmetic.ptx");
  auto in = randomNumbers<float>(64, 0, 200);
  Buffer to = run.empty<float>(64 * 8);
  run.run("conversions", {2, 1, 1}, {32, 1, 1}, 0, run.buffer(in), to);
  auto out = run.read<float>(to, 64 * 8);
  auto through = [](const FloatFormat &format, float value) {
    return static_cast<float>(
        decode(format, encode(format, value, Rounding::nearest_even, true)));
  };
  auto bfloat = [](double value) {
    return bfloatToFloat(floatToBfloat(toOddFloat(value)));
  };
  for (int i = 0; i < 64; ++i) {
    const float *row = &out[i * 8];
    EXPECT_EQ(row[0], rounded(in[i]));
    EXPECT_EQ(row[1], bfloat(in[i]));
    EXPECT_EQ(row[2], through(kFormatE4m3, in[i]));
    EXPECT_EQ(row[3], through(kFormatE5m2, in[i]));
    EXPECT_EQ(row[4], std::nearbyint(in[i]));
    EXPECT_EQ(row[5], static_cast<float>(std::trunc(in[i] * 1024.0f)));
    EXPECT_EQ(row[6], bfloat(double(bfloat(in[i])) * 2 + 1));
    EXPECT_EQ(row[7], std::trunc(in[i]));
  }
}

TEST(CorpusArithmetic, Doubles) {
  RunCorpus run("arithmetic.ptx");
  auto in = randomNumbers<double>(64, 0.1, 30);
  Buffer to = run.empty<double>(64 * 6);
  run.run("doubles", {2, 1, 1}, {32, 1, 1}, 0, run.buffer(in), to);
  auto out = run.read<double>(to, 64 * 6);
  for (int i = 0; i < 64; ++i) {
    double x = in[i];
    const double *row = &out[i * 6];
    EXPECT_DOUBLE_EQ(row[0], std::sqrt(x) + 1.0 / x);
    EXPECT_NEAR(row[1], std::exp(-x), 1e-15 * std::exp(-x));
    EXPECT_NEAR(row[2], std::log(x), 1e-15 * std::fabs(std::log(x)) + 1e-16);
    EXPECT_NEAR(row[3], std::sin(x) * std::cos(x), 1e-15);
    EXPECT_DOUBLE_EQ(row[4], std::fma(x, x, -x));
    EXPECT_DOUBLE_EQ(row[5], std::floor(x * 10.0) + std::fmod(x, 0.7));
  }
}

TEST(CorpusArithmetic, Singles) {
  RunCorpus run("arithmetic.ptx");
  auto in = randomNumbers<float>(64, 0.05, 5);
  Buffer to = run.empty<float>(64 * 8);
  run.run("singles", {2, 1, 1}, {32, 1, 1}, 0, run.buffer(in), to);
  auto out = run.read<float>(to, 64 * 8);
  for (int i = 0; i < 64; ++i) {
    double x = in[i];
    double expected[] = {std::exp(-x),
                         std::log(x),
                         std::sin(double(in[i] * 100.0f)),
                         std::pow(x, double(1.7f)),
                         1 / std::sqrt(x),
                         std::tanh(x),
                         std::erf(x),
                         std::exp(x) + 1 / x};
    for (int j = 0; j < 8; ++j)
      EXPECT_NEAR(out[i * 8 + j], expected[j],
                  1e-6 * std::fabs(expected[j]) + 3e-7)
          << "function " << j << " of " << x;
  }
}

TEST(CorpusArithmetic, WideIntegers) {
  RunCorpus run("arithmetic.ptx");
  using Wide = unsigned long long;
  std::vector<Wide> a, b;
  std::mt19937_64 random(corpusRandom()());
  for (int i = 0; i < 64; ++i) {
    a.push_back(random());
    b.push_back((random() >> (i % 60)) | 1);
  }
  Buffer to = run.empty<Wide>(64 * 6);
  run.run("wide", {1, 1, 1}, {64, 1, 1}, 0, run.buffer(a), run.buffer(b), to);
  auto out = run.read<Wide>(to, 64 * 6);
  for (int i = 0; i < 64; ++i) {
    const Wide *row = &out[i * 6];
    EXPECT_EQ(row[0], a[i] / b[i]);
    EXPECT_EQ(row[1], a[i] % b[i]);
    EXPECT_EQ(row[2], Wide((unsigned __int128)(a[i]) * b[i] >> 64));
    auto quotient = (__int128)(long long)a[i] / (long long)b[i];
    EXPECT_EQ(row[3], Wide(quotient));
    Wide reversed = 0;
    for (int bit = 0; bit < 64; ++bit)
      reversed |= (a[i] >> bit & 1) << (63 - bit);
    EXPECT_EQ(row[4], reversed ^ a[i] << (b[i] & 63));
    int dot = 7;
    for (int byte = 0; byte < 4; ++byte)
      dot += (signed char)(a[i] >> 8 * byte) * (signed char)(b[i] >> 8 * byte);
    auto bytes = (a[i] & 0xffffffff) | b[i] << 32;
    unsigned permuted = 0;
    for (int byte = 0; byte < 4; ++byte)
      permuted |= unsigned(bytes >> 8 * (0x3615 >> 4 * byte & 15) & 255)
                  << 8 * byte;
    EXPECT_EQ(row[5], Wide((unsigned)dot + permuted));
  }
}

} // namespace kiln
