// Float: arithmetic against wider arithmetic of the host, and the edges.
#include "kiln/base/types.h"
#include "support/Half.h"
#include "unit/sim/units/RunLanes.h"

#include <cfenv>
#include <cmath>
#include <random>

namespace kiln::sim {

static std::uint32_t bitsOf(float value) {
  return std::bit_cast<std::uint32_t>(value);
}
static std::uint64_t bitsOf(double value) {
  return std::bit_cast<std::uint64_t>(value);
}

static std::uint32_t float2(const std::string &instruction, float a, float b) {
  return calculate(instruction, "f32 f32 f32", {bitsOf(a), bitsOf(b)});
}
static std::uint32_t float1(const std::string &instruction, float a) {
  return calculate(instruction, "f32 f32", {bitsOf(a)});
}

TEST(Float, RoundsInEveryDirection) {
  // 1 + 2^-30 lies between 1 and its neighbour.
  float tiny = 0x1p-30f, next = std::nextafter(1.0f, 2.0f);
  EXPECT_EQ(float2("add.rn.f32", 1, tiny), bitsOf(1.0f));
  EXPECT_EQ(float2("add.rz.f32", 1, tiny), bitsOf(1.0f));
  EXPECT_EQ(float2("add.rm.f32", 1, tiny), bitsOf(1.0f));
  EXPECT_EQ(float2("add.rp.f32", 1, tiny), bitsOf(next));
  EXPECT_EQ(float2("sub.rm.f32", -1, tiny), bitsOf(-next));
  EXPECT_EQ(float2("sub.rz.f32", -1, tiny), bitsOf(-1.0f));
  EXPECT_EQ(calculate("fma.rp.f64", "f64 f64 f64 f64",
                      {bitsOf(1.0), bitsOf(1.0), bitsOf(0x1p-80)}),
            bitsOf(std::nextafter(1.0, 2.0)));
  EXPECT_EQ(calculate("div.rm.f64", "f64 f64 f64", {bitsOf(1.0), bitsOf(3.0)}),
            0x3fd5555555555555u);
  EXPECT_EQ(calculate("div.rp.f64", "f64 f64 f64", {bitsOf(1.0), bitsOf(3.0)}),
            0x3fd5555555555556u);
  EXPECT_EQ(std::fegetround(), FE_TONEAREST);
}

TEST(Float, FusesOnce) {
  float a = 1 + 0x1p-12f, c = -(1 + 0x1p-11f);
  std::uint32_t fused = calculate("fma.rn.f32", "f32 f32 f32 f32",
                                  {bitsOf(a), bitsOf(a), bitsOf(c)});
  EXPECT_EQ(fused, bitsOf(0x1p-24f));
  EXPECT_EQ(calculate("mad.rn.f32", "f32 f32 f32 f32",
                      {bitsOf(a), bitsOf(a), bitsOf(c)}),
            fused);
}

TEST(Float, FlushesSaturatesAndHasOneNan) {
  float subnormal = 0x1p-130f;
  EXPECT_EQ(float2("add.ftz.f32", subnormal, 0), 0u);
  EXPECT_EQ(float2("add.f32", subnormal, 0), bitsOf(subnormal));
  EXPECT_EQ(float2("mul.ftz.f32", -0x1p-100f, 0x1p-40f), bitsOf(-0.0f));
  EXPECT_EQ(float2("add.sat.f32", 3, 4), bitsOf(1.0f));
  EXPECT_EQ(float2("add.sat.f32", -3, 1), 0u);
  EXPECT_EQ(float2("mul.sat.f32", NAN, 1), 0u);
  EXPECT_EQ(float2("sub.f32", INFINITY, INFINITY), 0x7fffffffu);
  EXPECT_EQ(float2("mul.f32", -NAN, 2), 0x7fffffffu);
}

TEST(Float, DividesAndTakesRoots) {
  EXPECT_EQ(float2("div.rn.f32", 1, 3), bitsOf(1.0f / 3.0f));
  EXPECT_EQ(float2("div.full.f32", 1, 3), bitsOf(1.0f / 3.0f));
  EXPECT_EQ(float2("div.approx.f32", 1, 0x1.8p126f), 0u);
  EXPECT_EQ(float2("div.approx.f32", INFINITY, 0x1.8p126f), 0x7fffffffu);
  EXPECT_EQ(float1("sqrt.rn.f32", 2), bitsOf(std::sqrt(2.0f)));
  EXPECT_EQ(float1("sqrt.rp.f32", 2),
            bitsOf(std::nextafter(float(std::sqrt(2.0)), 2.0f)));
  EXPECT_EQ(float1("sqrt.approx.f32", -1), 0x7fffffffu);
  EXPECT_EQ(float1("rcp.approx.ftz.f32", -0.0f), bitsOf(-INFINITY));
  EXPECT_EQ(float1("rsqrt.approx.f32", 4), bitsOf(0.5f));
  EXPECT_EQ(float1("rsqrt.approx.f32", -0.0f), bitsOf(-INFINITY));
  EXPECT_EQ(calculate("rcp.approx.ftz.f64", "f64 f64", {bitsOf(3.0)}),
            bitsOf(1.0 / 3.0) & 0xffffffff00000000u);
}

TEST(Float, Functions) {
  EXPECT_EQ(float1("ex2.approx.f32", 3), bitsOf(8.0f));
  EXPECT_EQ(float1("ex2.approx.ftz.f32", -INFINITY), 0u);
  EXPECT_EQ(float1("lg2.approx.f32", 8), bitsOf(3.0f));
  EXPECT_EQ(float1("lg2.approx.f32", 0), bitsOf(-INFINITY));
  EXPECT_EQ(float1("cos.approx.f32", 0), bitsOf(1.0f));
  EXPECT_EQ(float1("sin.approx.f32", INFINITY), 0x7fffffffu);
  EXPECT_EQ(float1("tanh.approx.f32", INFINITY), bitsOf(1.0f));
  EXPECT_EQ(calculate("ex2.approx.f16x2", "b32 b32", {0x40004200}),
            0x44004800u);
  EXPECT_EQ(calculate("ex2.approx.ftz.bf16", "b16 b16", {0x4000}), 0x4080u);
}

TEST(Float, MinimaAndMaxima) {
  EXPECT_EQ(float2("min.f32", NAN, 3), bitsOf(3.0f));
  EXPECT_EQ(float2("max.f32", -3, NAN), bitsOf(-3.0f));
  EXPECT_EQ(float2("max.NaN.f32", -3, NAN), 0x7fffffffu);
  EXPECT_EQ(float2("min.f32", NAN, NAN), 0x7fffffffu);
  EXPECT_EQ(float2("min.f32", 0.0f, -0.0f), bitsOf(-0.0f));
  EXPECT_EQ(float2("max.f32", -0.0f, 0.0f), 0u);
  EXPECT_EQ(float2("min.xorsign.abs.f32", -2, 5), bitsOf(-2.0f));
  EXPECT_EQ(float2("max.xorsign.abs.f32", -2, -5), bitsOf(5.0f));
  EXPECT_EQ(calculate("min.f16x2", "b32 b32 b32", {0x7e003c00, 0x40004200}),
            0x40003c00u);
  EXPECT_EQ(calculate("max.NaN.bf16", "b16 b16 b16", {0x7fc0, 0x3f80}),
            0x7fffu);
}

TEST(Float, SignsAndTests) {
  EXPECT_EQ(float1("neg.f32", 0), 0x80000000u);
  EXPECT_EQ(float1("abs.ftz.f32", -0x1p-140f), 0u);
  EXPECT_EQ(calculate("neg.f16x2", "b32 b32", {0x3c00bc00}), 0xbc003c00u);
  EXPECT_EQ(calculate("abs.bf16", "b16 b16", {0xbf80}), 0x3f80u);
  EXPECT_EQ(float2("copysign.f32", -1, 7), bitsOf(-7.0f));
  RunLanes lanes(".reg .f32 %a; .reg .pred %n, %s, %i, %f;",
                 "testp.notanumber.f32 %n, %a; testp.subnormal.f32 %s, %a;"
                 "testp.infinite.f32 %i, %a; testp.normal.f32 %f, %a;");
  float values[] = {NAN, 0x1p-140f, INFINITY, 1, 0};
  for (int lane = 0; lane < 5; ++lane)
    lanes.set("%a", lane, bitsOf(values[lane]));
  lanes.run();
  EXPECT_EQ(lanes.pred("%n") & 31, 0b00001u);
  EXPECT_EQ(lanes.pred("%s") & 31, 0b00010u);
  EXPECT_EQ(lanes.pred("%i") & 31, 0b00100u);
  EXPECT_EQ(lanes.pred("%f") & 31, 0b01000u);
}

/// NaNs are all one here.
static std::uint64_t sameNan(Type type, std::uint64_t bits) {
  return std::isnan(from_bits(type, bits)) ? 0x7fff : bits;
}

using Exact = long double (*)(long double, long double, long double);

/// The exact result cut off to a double, with the last bit set where something
/// was lost: rounding that once is rounding the exact result.
static double cutOff(Exact function, long double a, long double b,
                     long double c) {
  volatile long double x = a, y = b, z = c;
  std::fesetround(FE_TOWARDZERO);
  std::feclearexcept(FE_ALL_EXCEPT);
  volatile double result = static_cast<double>(function(x, y, z));
  bool isInexact = std::fetestexcept(FE_INEXACT);
  std::fesetround(FE_TONEAREST);
  return std::bit_cast<double>(bitsOf(double(result)) | (isInexact ? 1 : 0));
}

/// Compare an instruction on random 16-bit floats with the exact result.
static void compareHalves(Type type, const std::string &instruction,
                          Exact expected, bool isTernary) {
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    RunLanes lanes(
        ".reg .b16 %a, %b, %c, %d;",
        fmt::format("{} %d, %a, %b{};", instruction, isTernary ? ", %c" : ""));
    std::uint16_t values[3][kLanes];
    for (int lane = 0; lane < kLanes; ++lane)
      for (int i = 0; i < 3; ++i) {
        values[i][lane] = std::uint16_t(random());
        const char *names[] = {"%a", "%b", "%c"};
        lanes.set(names[i], lane, values[i][lane]);
      }
    lanes.run();
    for (int lane = 0; lane < kLanes; ++lane) {
      long double a = from_bits(type, values[0][lane]);
      long double b = from_bits(type, values[1][lane]);
      long double c = from_bits(type, values[2][lane]);
      double rounded = cutOff(expected, a, b, c);
      EXPECT_EQ(lanes.get("%d", lane), sameNan(type, to_bits(type, rounded)))
          << instruction << " " << double(a) << " " << double(b) << " "
          << double(c);
    }
  }
}

TEST(Float, SixteenBitArithmeticRoundsOnce) {
  using L = long double;
  auto add = [](L a, L b, L) { return a + b; };
  auto sub = [](L a, L b, L) { return a - b; };
  auto mul = [](L a, L b, L) { return a * b; };
  auto fma = [](L a, L b, L c) { return a * b + c; };
  compareHalves(f16, "add.f16", add, false);
  compareHalves(f16, "sub.rn.f16", sub, false);
  compareHalves(f16, "mul.f16", mul, false);
  compareHalves(f16, "fma.rn.f16", fma, true);
  compareHalves(bf16, "add.rn.bf16", add, false);
  compareHalves(bf16, "mul.bf16", mul, false);
  compareHalves(bf16, "fma.rn.bf16", fma, true);
}

TEST(Float, BfloatFmaBreaksTies) {
  std::uint64_t a = to_bits(bf16, 1 + 0x1p-7), b = to_bits(bf16, 1.5);
  // 1.5 * (1 + 2^-7) = 1.5 + 2^-7 + 2^-8: a tie, which a tiny c breaks.
  EXPECT_EQ(calculate("fma.rn.bf16", "b16 b16 b16 b16",
                      {a, b, to_bits(bf16, 0x1p-100)}),
            to_bits(bf16, 1.5 + 0x1p-6));
  EXPECT_EQ(calculate("fma.rn.bf16", "b16 b16 b16 b16",
                      {a, b, to_bits(bf16, -0x1p-100)}),
            to_bits(bf16, 1.5 + 0x1p-7));
}

TEST(Float, SixteenBitOptions) {
  EXPECT_EQ(
      calculate("fma.rn.relu.f16", "b16 b16 b16 b16", {0x3c00, 0xbc00, 0}), 0u);
  EXPECT_EQ(calculate("add.sat.f16", "b16 b16 b16", {0x3c00, 0x3c00}), 0x3c00u);
  EXPECT_EQ(calculate("add.ftz.f16", "b16 b16 b16", {0x0001, 0x0001}), 0u);
  EXPECT_EQ(calculate("add.f16x2", "b32 b32 b32", {0x3c00ffff, 0x3c000001}),
            0x40007fffu);
}

TEST(Float, RefusesByReason) {
  expectRefusals({
      {"mul.f32.bf16 %r, %h, %r;", "the modifier .f32 is not known for mul"},
      {"add.ftz.f64 %d, %d, %d;", "f64 has neither .ftz nor .sat"},
      {"add.tf32 %r, %r, %r;", "the modifier .tf32 is not known for add"},
      {"min.tf32 %r, %r, %r;", "the modifier .tf32 is not known for min"},
      {"neg.tf32 %r, %r;", "the modifier .tf32 is not known for neg"},
      {"add.relu.f16 %h, %h, %h;", "the modifier .relu is not known for add"},
      {"add.sat.bf16 %h, %h, %h;", "bf16 has neither .ftz nor .sat"},
      {"mad.f16 %h, %h, %h, %h;", "the modifier .f16 is not known for mad"},
      {"div.f16 %h, %h, %h;", "the modifier .f16 is not known for div"},
      {"sin.approx.f16 %h, %h;", "the modifier .f16 is not known for sin"},
      {"fma.rn.oob.f32 %r, %r, %r, %r;",
       "the modifier .oob is not known for fma"},
  });
}

} // namespace kiln::sim
