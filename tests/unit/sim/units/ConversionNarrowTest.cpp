// ConversionNarrow: floats of 6 and 4 bits and powers of two exhaustively, and
// stochastic rounding against its definition.
#include "support/Half.h"
#include "unit/sim/units/RunLanes.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace kiln::sim {

namespace {
/// A narrow type, word for word: sign, exponent and fraction.
struct Narrow {
  const char *name;
  int exponentBits, fractionBits, container;

  int bits() const { return 1 + exponentBits + fractionBits; }
  double value(unsigned code) const {
    int bias = (1 << (exponentBits - 1)) - 1;
    int exponent = int(code >> fractionBits) & ((1 << exponentBits) - 1);
    double fraction =
        double(code & ((1u << fractionBits) - 1)) / (1 << fractionBits);
    double size = exponent ? std::ldexp(1 + fraction, exponent - bias)
                           : std::ldexp(fraction, 1 - bias);
    return code >> (bits() - 1) & 1 ? -size : size;
  }
  /// The nearest code; of two that are as near, the even one.
  unsigned nearest(double value) const {
    unsigned sign = std::signbit(value) ? 1u << (bits() - 1) : 0;
    unsigned best = 0;
    value = std::clamp(value, -1e6, 1e6);
    for (unsigned code = 0; code < 1u << (bits() - 1); ++code) {
      double distance = std::fabs(this->value(code) - std::fabs(value));
      double least = std::fabs(this->value(best) - std::fabs(value));
      if (distance < least || (distance == least && code % 2 == 0))
        best = code;
    }
    return best | sign;
  }
};
} // namespace

static constexpr Narrow kNarrow[] = {
    {"e2m3", 2, 3, 8}, {"e3m2", 3, 2, 8}, {"e2m1", 2, 1, 4}};

static std::uint32_t bitsOf(double value) {
  return std::bit_cast<std::uint32_t>(float(value));
}

TEST(ConversionNarrow, PairsOfFloatsRoundToNearest) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> real(-9, 9);
  for (const Narrow &type : kNarrow) {
    std::string to = type.container == 4 ? "b8" : "b16";
    std::string text =
        fmt::format("cvt.rn.satfinite.{}x2.f32 %d, %a, %b;", type.name);
    RunLanes lanes(fmt::format(".reg .{} %d; .reg .f32 %a, %b;", to), text);
    std::vector<double> a, b;
    for (int lane = 0; lane < 32; ++lane) {
      // Halfway between two codes, at them, anywhere, and beyond.
      double middle = (type.value(lane % 8) + type.value(lane % 8 + 1)) / 2;
      a.push_back(lane < 8 ? middle : lane < 16 ? -middle : real(random));
      b.push_back(lane == 31 ? 1e30 : lane == 30 ? -INFINITY : real(random));
      lanes.set("%a", lane, bitsOf(a.back())).set("%b", lane, bitsOf(b.back()));
    }
    lanes.run();
    for (int lane = 0; lane < 32; ++lane)
      EXPECT_EQ(lanes.get("%d", lane),
                type.nearest(a[lane]) << type.container | type.nearest(b[lane]))
          << type.name << " of " << a[lane] << ", " << b[lane];
  }
  EXPECT_EQ(calculate("cvt.rn.satfinite.e2m1x2.f32", "b8 f32 f32",
                      {bitsOf(NAN), bitsOf(-0.2)}),
            0x78u);
  EXPECT_EQ(calculate("cvt.rn.satfinite.relu.e3m2x2.f32", "b16 f32 f32",
                      {bitsOf(-3), bitsOf(3)}),
            0x0012u);
}

TEST(ConversionNarrow, PairsWidenAndComeBack) {
  for (const Narrow &type : kNarrow) {
    std::string narrow = type.container == 4 ? "b8" : "b16";
    unsigned count = 1u << type.bits();
    for (unsigned code = 0; code < count; ++code) {
      unsigned other = (code * 7 + 3) % count;
      unsigned pair = code << type.container | other;
      auto halves = static_cast<std::uint32_t>(calculate(
          fmt::format("cvt.rn.f16x2.{}x2", type.name), "b32 " + narrow,
          {pair}));
      EXPECT_EQ(halfToFloat(std::uint16_t(halves >> 16)), type.value(code));
      EXPECT_EQ(halfToFloat(std::uint16_t(halves)), type.value(other));
      if (type.container == 4) {
        EXPECT_EQ(calculate("cvt.rn.satfinite.e2m1x2.f16x2", "b8 b32",
                            {halves}),
                  pair);
      }
    }
  }
}

/// The same as CUDA's own header does on a host: by way of a bf16.
static unsigned powerOf(float value, bool isUp, bool isFinite) {
  std::uint32_t bits = std::bit_cast<std::uint32_t>(value) & 0x7fffffff;
  if (bits > 0x7f800000)
    return 0xff;
  std::uint32_t half = bits >> 16;
  if (isUp && bits < 0x7f800000 && (bits & 0xffff))
    ++half;
  unsigned power = half >> 7;
  if (isUp && (half & 0x7f) && half > 0x40 && half < 0x7f80)
    ++power;
  return isFinite && power == 0xff ? 0xfe : power;
}

TEST(ConversionNarrow, PowersOfTwo) {
  std::mt19937 random(5);
  for (const char *round : {"rz", "rp"})
    for (bool isFinite : {false, true}) {
      std::string text = fmt::format("cvt.{}{}.ue8m0x2.f32 %d, %a, %b;", round,
                                     isFinite ? ".satfinite" : "");
      for (int i = 0; i < 40; ++i) {
        RunLanes lanes(".reg .b16 %d; .reg .f32 %a, %b;", text);
        std::vector<float> values;
        for (int lane = 0; lane < 64; ++lane) {
          std::uint32_t bits = std::uint32_t(random());
          if (lane % 4 == 0)
            bits &= 0xff800000; // a power of two, an infinity
          if (lane % 8 == 1)
            bits &= 0x007fffff; // subnormal
          values.push_back(std::bit_cast<float>(bits));
          lanes.set(lane % 2 ? "%b" : "%a", lane / 2, bits);
        }
        lanes.run();
        for (int lane = 0; lane < 32; ++lane)
          ASSERT_EQ(lanes.get("%d", lane),
                    powerOf(values[2 * lane], round[1] == 'p', isFinite) << 8 |
                        powerOf(values[2 * lane + 1], round[1] == 'p',
                                isFinite))
              << text << " " << values[2 * lane] << " "
              << values[2 * lane + 1];
      }
    }
  EXPECT_EQ(calculate("cvt.rp.ue8m0x2.bf16x2", "b16 b32", {0x3f813f80}),
            0x807fu);
  EXPECT_EQ(calculate("cvt.rn.bf16x2.ue8m0x2", "b32 b16", {0x80ff}),
            0x40007fffu);
  EXPECT_EQ(calculate("cvt.rn.bf16x2.ue8m0x2", "b32 b16", {0x0001}),
            0x00400080u);
}

TEST(ConversionNarrow, StochasticRounding) {
  // 1 + 3/8 of f16's last place, and 2 - 1/4 of it.
  double a = 1 + 0x1p-10 * 3 / 8, b = 2 - 0x1p-10 / 4;
  auto rounded = [&](std::uint32_t random) {
    return calculate("cvt.rs.f16x2.f32", "b32 f32 f32 b32",
                     {bitsOf(a), bitsOf(b), random});
  };
  // Thirteen bits each: the fraction that is added.
  EXPECT_EQ(rounded(0), 0x3c003fffu);
  EXPECT_EQ(rounded(0x13ff0000), 0x3c003fffu);
  EXPECT_EQ(rounded(0x14000000), 0x3c013fffu);
  EXPECT_EQ(rounded(0x00000800), 0x3c004000u);
  EXPECT_EQ(rounded(0x000007ff), 0x3c003fffu);
  EXPECT_EQ(calculate("cvt.rs.relu.bf16x2.f32", "b32 f32 f32 b32",
                      {bitsOf(-1), bitsOf(1 + 0x1p-7 / 2), 0x8000}),
            0x00003f81u);
  // Of fours each element has a byte: here e2m1 of 1.25, between 1 and 1.5.
  int up = 0;
  for (std::uint32_t random = 0; random < 256; random += 16) {
    RunLanes lanes(".reg .b16 %d; .reg .b32 %r; .reg .f32 %a, %b, %c, %e;",
                   "cvt.rs.satfinite.e2m1x4.f32 %d, {%a, %b, %c, %e}, %r;");
    lanes.set("%a", 0, bitsOf(9)).set("%b", 0, bitsOf(-1.5));
    lanes.set("%c", 0, bitsOf(0)).set("%e", 0, bitsOf(1.25));
    auto found = lanes.set("%r", 0, random).run().get("%d");
    EXPECT_EQ(found >> 4, 0x7b0u);
    up += (found & 15) == 3;
  }
  EXPECT_EQ(up, 8);
}

TEST(ConversionNarrow, PacksFewBits) {
  EXPECT_EQ(calculate("cvt.pack.sat.u4.s32.b32", "b32 b32 b32 b32",
                      {99, 0xfffffff0, 0xabc}),
            0xabcf0u);
  EXPECT_EQ(calculate("cvt.pack.sat.s4.s32.b32", "b32 b32 b32 b32",
                      {99, 0xfffffff0, 1}),
            0x178u);
  EXPECT_EQ(calculate("cvt.pack.sat.s2.s32.b32", "b32 b32 b32 b32",
                      {1, 0xfffffffe, 5}),
            0x56u);
}

TEST(ConversionNarrow, RefusesByReason) {
  expectRefusals({{"cvt.rn.e2m3x2.f32 %h, %r, %r;", "need .satfinite"},
                  {"cvt.rn.ue8m0x2.f32 %h, %r, %r;", "takes .rz or .rp"},
                  {"cvt.rs.satfinite.e4m3x4.f32 %r, {%r, %r}, %r;",
                   "a vector of 2 floats; it takes 4"}});
}

} // namespace kiln::sim
