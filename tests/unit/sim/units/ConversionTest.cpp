// Conversion: 16-bit floats exhaustively, the others at their edges.
#include "sim/units/scalar/Conversion.h"
#include "kiln/base/types.h"
#include "support/Half.h"
#include "unit/sim/units/RunLanes.h"

#include <cmath>
#include <random>

namespace kiln::sim {

static std::uint32_t bitsOf(float value) {
  return std::bit_cast<std::uint32_t>(value);
}
static std::uint64_t bitsOf(double value) {
  return std::bit_cast<std::uint64_t>(value);
}

TEST(Conversion, EveryHalfWidens) {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    double exact = from_bits(f16, bits);
    float fast = halfToFloat(std::uint16_t(bits));
    if (std::isnan(exact)) {
      EXPECT_TRUE(std::isnan(fast));
      continue;
    }
    ASSERT_EQ(double(fast), exact) << bits;
    ASSERT_EQ(floatToHalf(fast), bits);
    ASSERT_EQ(decode(kFormatF16, bits), exact);
  }
}

TEST(Conversion, NeighboursOfEveryHalfRound) {
  for (unsigned bits = 0; bits < 0xffff; ++bits) {
    double value = from_bits(f16, bits);
    if (!std::isfinite(value) || !std::isfinite(from_bits(f16, bits + 1)))
      continue;
    // The middle between two halves, and both sides of it.
    float middle = float((value + from_bits(f16, bits + 1)) / 2);
    for (float probe : {std::nextafter(middle, 1e9f), middle,
                        std::nextafter(middle, -1e9f)}) {
      ASSERT_EQ(floatToHalf(probe), to_bits(f16, probe)) << probe;
      ASSERT_EQ(encode(kFormatF16, probe, Rounding::nearest_even, false),
                to_bits(f16, probe));
    }
  }
  EXPECT_EQ(floatToHalf(65519.99f), 0x7bffu);
  EXPECT_EQ(floatToHalf(65520.0f), 0x7c00u);
  EXPECT_EQ(floatToHalf(-INFINITY), 0xfc00u);
  EXPECT_EQ(floatToHalf(NAN), 0x7fffu);
}

TEST(Conversion, FloatsRoundToBfloat) {
  std::mt19937 random(3);
  for (int i = 0; i < 200000; ++i) {
    float value = std::bit_cast<float>(std::uint32_t(random()));
    if (std::isnan(value))
      continue;
    ASSERT_EQ(floatToBfloat(value), to_bits(bf16, value)) << value;
  }
  EXPECT_EQ(floatToBfloat(NAN), 0x7fffu);
}

TEST(Conversion, EightBitFormatsAgreeWithTypes) {
  for (unsigned bits = 0; bits < 256; ++bits) {
    double value = from_bits(e4m3, bits);
    if (!std::isnan(value)) {
      EXPECT_EQ(decode(kFormatE4m3, bits), value) << bits;
      EXPECT_EQ(encode(kFormatE4m3, value, Rounding::nearest_even, true), bits);
    }
    value = from_bits(e5m2, bits);
    if (std::isfinite(value)) {
      EXPECT_EQ(decode(kFormatE5m2, bits), value) << bits;
      EXPECT_EQ(encode(kFormatE5m2, value, Rounding::nearest_even, true), bits);
    }
  }
}

TEST(Conversion, DirectedRoundingOfFormats) {
  double above = 1 + 0x1p-20;
  EXPECT_EQ(encode(kFormatF16, above, Rounding::up, false), 0x3c01u);
  EXPECT_EQ(encode(kFormatF16, above, Rounding::down, false), 0x3c00u);
  EXPECT_EQ(encode(kFormatF16, -above, Rounding::down, false), 0xbc01u);
  EXPECT_EQ(encode(kFormatF16, 1e9, Rounding::toward_zero, false), 0x7bffu);
  EXPECT_EQ(encode(kFormatF16, 1e9, Rounding::nearest_even, true), 0x7bffu);
  EXPECT_EQ(encode(kFormatF16, 1e-30, Rounding::up, false), 1u);
  EXPECT_EQ(encode(kFormatF32, 1 + 0x1p-30, Rounding::up, false), 0x3f800001u);
}

TEST(Conversion, IntegersWidenAndNarrow) {
  EXPECT_EQ(calculate("cvt.s64.s32", "b64 b32", {0x80000000}),
            0xffffffff80000000u);
  EXPECT_EQ(calculate("cvt.u64.u32", "b64 b32", {0x80000000}), 0x80000000u);
  EXPECT_EQ(calculate("cvt.u16.u32", "b16 b32", {0x12345678}), 0x5678u);
  EXPECT_EQ(calculate("cvt.s8.s32", "b32 b32", {0x80}), 0xffffff80u);
  EXPECT_EQ(calculate("cvt.u8.u32", "b16 b32", {0x1ff}), 0xffu);
  EXPECT_EQ(calculate("cvt.s32.s8", "b32 b16", {0x00ff}), 0xffffffffu);
  EXPECT_EQ(calculate("cvt.u32.u64", "b32 b64", {0x123456789ull}), 0x23456789u);
  EXPECT_EQ(calculate("cvt.sat.s8.s32", "b32 b32", {1000}), 127u);
  EXPECT_EQ(calculate("cvt.sat.u16.s32", "b16 b32", {0xffffffff}), 0u);
  EXPECT_EQ(calculate("cvt.sat.s32.u32", "b32 b32", {0xffffffff}), 0x7fffffffu);
}

TEST(Conversion, FloatsBecomeIntegers) {
  auto toS32 = [](const char *mode, float value) {
    return std::int32_t(calculate(fmt::format("cvt.{}.s32.f32", mode),
                                  "b32 f32", {bitsOf(value)}));
  };
  EXPECT_EQ(toS32("rni", 2.5f), 2);
  EXPECT_EQ(toS32("rzi", -2.7f), -2);
  EXPECT_EQ(toS32("rmi", -2.1f), -3);
  EXPECT_EQ(toS32("rpi", 2.1f), 3);
  EXPECT_EQ(toS32("rzi", 1e20f), 0x7fffffff);
  EXPECT_EQ(toS32("rzi", -INFINITY), INT32_MIN);
  EXPECT_EQ(toS32("rzi", NAN), 0);
  EXPECT_EQ(toS32("rpi", 0x1p-140f), 1);
  EXPECT_EQ(toS32("rpi.ftz", 0x1p-140f), 0);
  EXPECT_EQ(calculate("cvt.rzi.u32.f32", "b32 f32", {bitsOf(-5.0f)}), 0u);
  EXPECT_EQ(calculate("cvt.rzi.u32.f32", "b32 f32", {bitsOf(4294967040.0f)}),
            4294967040u);
  EXPECT_EQ(calculate("cvt.rzi.u64.f64", "b64 f64", {bitsOf(1e30)}), ~0ull);
  EXPECT_EQ(calculate("cvt.rzi.s64.f32", "b64 f32", {bitsOf(NAN)}), 1ull << 63);
  EXPECT_EQ(calculate("cvt.rzi.s32.f64", "b32 f64", {bitsOf(double(NAN))}),
            0x80000000u);
  EXPECT_EQ(calculate("cvt.rzi.u8.f32", "b16 f32", {bitsOf(300.0f)}), 255u);
  EXPECT_EQ(calculate("cvt.rni.s32.f16", "b32 b16", {0x4248}), 3u);
}

TEST(Conversion, IntegersBecomeFloats) {
  EXPECT_EQ(calculate("cvt.rn.f32.s32", "f32 b32", {0xffffffff}),
            bitsOf(-1.0f));
  EXPECT_EQ(calculate("cvt.rn.f32.u32", "f32 b32", {0xffffffff}),
            bitsOf(4294967296.0f));
  EXPECT_EQ(calculate("cvt.rz.f32.u32", "f32 b32", {0xffffffff}),
            bitsOf(4294967040.0f));
  EXPECT_EQ(calculate("cvt.rn.f32.u64", "f32 b64", {~0ull}), bitsOf(0x1p64f));
  EXPECT_EQ(calculate("cvt.rz.f64.u64", "f64 b64", {~0ull}),
            bitsOf(std::nextafter(0x1p64, 0.0)));
  EXPECT_EQ(calculate("cvt.rn.f16.s32", "b16 b32", {2049}), 0x6800u);
  EXPECT_EQ(calculate("cvt.rn.f16.u16", "b16 b16", {0xffff}), 0x7c00u);
  // 2^62 + half of the last place + 1: only the sticky bit breaks the tie.
  EXPECT_EQ(calculate("cvt.rn.bf16.u64", "b16 b64",
                      {(1ull << 62) + (1ull << 54) + 1}),
            0x5e81u);
}

TEST(Conversion, FloatsBecomeFloats) {
  EXPECT_EQ(calculate("cvt.rn.f16.f32", "b16 f32", {bitsOf(1.0f)}), 0x3c00u);
  EXPECT_EQ(calculate("cvt.rz.f16.f32", "b16 f32", {bitsOf(65519.0f)}),
            0x7bffu);
  EXPECT_EQ(calculate("cvt.f32.f16", "f32 b16", {0x0001}), bitsOf(0x1p-24f));
  EXPECT_EQ(calculate("cvt.f32.f16", "f32 b16", {0xfe00}), 0x7fffffffu);
  EXPECT_EQ(calculate("cvt.f64.f32", "f64 f32", {bitsOf(1.5f)}), bitsOf(1.5));
  EXPECT_EQ(calculate("cvt.rp.f32.f64", "f32 f64", {bitsOf(1 + 0x1p-40)}),
            0x3f800001u);
  EXPECT_EQ(calculate("cvt.rni.f32.f32", "f32 f32", {bitsOf(-0.4f)}),
            bitsOf(-0.0f));
  EXPECT_EQ(calculate("cvt.rmi.f64.f64", "f64 f64", {bitsOf(-1.5)}),
            bitsOf(-2.0));
  EXPECT_EQ(calculate("cvt.sat.f32.f32", "f32 f32", {bitsOf(7.0f)}),
            bitsOf(1.0f));
  EXPECT_EQ(calculate("cvt.rn.relu.bf16.f32", "b16 f32", {bitsOf(-7.0f)}), 0u);
  EXPECT_EQ(calculate("cvt.rn.bf16.f16", "b16 b16", {0x3c01}), 0x3f80u);
}

TEST(Conversion, Tf32TiesGoAway) {
  EXPECT_EQ(calculate("cvt.rna.tf32.f32", "b32 f32", {0x3f801000}),
            0x3f802000u);
  EXPECT_EQ(calculate("cvt.rna.tf32.f32", "b32 f32", {0xbf800fff}),
            0xbf800000u);
  EXPECT_EQ(calculate("cvt.rn.tf32.f32", "b32 f32", {0x3f801000}), 0x3f800000u);
}

TEST(Conversion, PairsHaveTheFirstOperandOnTop) {
  EXPECT_EQ(calculate("cvt.rn.f16x2.f32", "b32 f32 f32",
                      {bitsOf(1.0f), bitsOf(2.0f)}),
            0x3c004000u);
  EXPECT_EQ(calculate("cvt.rn.relu.bf16x2.f32", "b32 f32 f32",
                      {bitsOf(-1.0f), bitsOf(2.0f)}),
            0x00004000u);
  EXPECT_EQ(calculate("cvt.rn.satfinite.e4m3x2.f32", "b16 f32 f32",
                      {bitsOf(1e9f), bitsOf(-1.0f)}),
            0x7eb8u);
  EXPECT_EQ(calculate("cvt.rn.satfinite.e5m2x2.f32", "b16 f32 f32",
                      {bitsOf(NAN), bitsOf(INFINITY)}),
            0x7f7bu);
  EXPECT_EQ(calculate("cvt.rn.f16x2.e4m3x2", "b32 b16", {0x38c0}), 0x3c00c000u);
  EXPECT_EQ(
      calculate("cvt.rn.satfinite.relu.e4m3x2.f16x2", "b16 b32", {0xbc003c00}),
      0x0038u);
  EXPECT_EQ(
      calculate("cvt.pack.sat.s16.s32", "b32 b32 b32", {0xffff0000, 100000}),
      0x80007fffu);
  EXPECT_EQ(calculate("cvt.pack.sat.u8.s32.b32", "b32 b32 b32 b32",
                      {300, 0xffffffff, 0x1234}),
            0x1234ff00u);
}

TEST(Conversion, RefusesByReason) {
  expectRefusals({
      {"cvt.rn.f16.e2m1 %h, %h;", "the modifier .e2m1 is not known for cvt"},
      {"cvt.s32.f32 %r, %r;",
       "a float becomes an integer by .rni .rzi .rmi or .rpi"},
      {"cvt.u64.u32 %r, %r;",
       "operand 1 of cvt is the register %r of type .b32, and must be a "
       "register of type .u64 or wider"},
      {"cvt.u32.u64 %r, %r;",
       "operand 2 of cvt is the register %r of type .b32, and must be a value "
       "of type .u64 or wider"},
      {"cvt.rn.e4m3x2.f32 %h, %r, %r;", "8-bit floats need .satfinite"},
      {"cvt.rn.f16x2.bf16x2 %r, %r;", "pairs are made of f32"},
      {"cvt.pack.s16.s32 %r, %r, %r;", "cvt.pack needs .sat and two types"},
      {"cvt.pack.sat.s32.s32 %r, %r, %r;",
       "cvt.pack needs one of .u16 .s16 .u8 .s8"},
  });
}

} // namespace kiln::sim
