// Math: what is refused of functions, bits and roundings.
#include "Refused.h"

using namespace errors;

namespace {
struct MathErrors : testing::Test {
  KernelBuilder kb{"k", {.threads = 32}};
  Value whole = kb.scalar("whole", i32);
  Value natural = kb.scalar("natural", u32);
  Value wide = kb.scalar("wide", i64);
  Value real = kb.scalar("real", f32);
  Value half = kb.scalar("half", f16);
  Tensor bytes = kb.tensor("bytes", e4m3, {32});
};
} // namespace

TEST_F(MathErrors, FunctionsOfF32) {
  refused(
      __LINE__, [&] { kiln::sqrt(half); },
      "sqrt is a function of f32, not of f16; `cast` to f32 and back");
  refused(
      __LINE__, [&] { kiln::exp2(whole); },
      "exp2 is a function of f32, not of i32; `cast` to f32 and back");
  refused(
      __LINE__, [&] { kiln::tanh(bytes(0)); },
      "'tanh' was applied to e4m3, which can be loaded, stored, cast and "
      "multiplied by wgmma, and not computed with");
}

TEST_F(MathErrors, AbsAndFma) {
  refused(
      __LINE__, [&] { kiln::abs(natural); },
      "u32 has no sign; abs takes floats and signed integers");
  refused(
      __LINE__, [&] { kiln::fma(whole, 1, 2); },
      "fma takes f16, bf16, f32 and f64, not i32; write a * b + c");
  refused(
      __LINE__, [&] { kiln::fma(real, half, 2); },
      "expected a value of type f32, found f16; `cast` converts");
}

TEST_F(MathErrors, BitsAreOfIntegers) {
  refused(
      __LINE__, [&] { popcount(real); },
      "popcount looks at the bits of an integer, not of f32; `bitcast` reads "
      "them as one");
  refused(
      __LINE__, [&] { count_leading_zeros(whole == 0); },
      "count_leading_zeros looks at the bits of an integer, not of i1; "
      "`bitcast` reads them as one");
  refused(
      __LINE__, [&] { reverse_bits(half); },
      "reverse_bits looks at the bits of an integer, not of f16; `bitcast` "
      "reads them as one");
}

TEST_F(MathErrors, Bitcast) {
  refused(
      __LINE__, [&] { bitcast(real, i64); },
      "bitcast from f32 to i64: one has 32 bits, the other 64; `cast` converts "
      "between sizes");
  refused(
      __LINE__, [&] { bitcast(bytes(0).address(), u64); },
      "bitcast was applied to an address; inline_ptx takes addresses as they "
      "are");
}

TEST_F(MathErrors, RoundingsThereAreNone) {
  std::string accepted =
      "; roundings are for f32 and f64 to and from integers of 32 and 64 "
      "bits, f64 to f32, f32 to f16 and bf16, and f32 to tf32 (to nearest "
      "even, "
      "toward zero, or to nearest away from zero)";
  refused(
      __LINE__, [&] { cast(half, f32, Rounding::up); },
      "there is no cast from f16 to f32 that rounds up" + accepted);
  refused(
      __LINE__, [&] { cast(real, i8, Rounding::down); },
      "there is no cast from f32 to i8 that rounds down" + accepted);
  refused(
      __LINE__, [&] { cast(real, tf32, Rounding::down); },
      "there is no cast from f32 to tf32 that rounds down" + accepted);
  refused(
      __LINE__, [&] { cast(real, f16, Rounding::nearest_away); },
      "there is no cast from f32 to f16 that rounds to nearest away from zero" +
          accepted);
  refused(
      __LINE__, [&] { cast(whole, i64, Rounding::toward_zero); },
      "there is no cast from i32 to i64 that rounds toward zero" + accepted);
  refused(
      __LINE__, [&] { cast(real, f32, Rounding::nearest_even); },
      "there is no cast from f32 to f32 that rounds to nearest even" +
          accepted);
}
