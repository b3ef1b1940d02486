// math.h: functions of one instruction: roots, exponentials, bits, conversions.
//
// The functions of f32 are those of the special-function unit: approximate, at
// the hardware's full rate. The error each states is the one PTX guarantees
// (PTX, "Floating Point Instructions"). There is no correctly rounded form and
// no other type; `cast` to f32 and back.
//
//     Value softmax = exp2((x - row_max) * 1.442695) * rcp(row_sum);
//
// With .ftz subnormal operands and results are 0 of the same sign. The unit
// itself knows no other: without .ftz the assembler puts a comparison and two
// multiplications around most of them. KernelOptions::ftz asks for it
// everywhere, MathOptions in one call.
#pragma once

#include <kiln/base/export.h>
#include <kiln/language/value/value.h>

#include <optional>

namespace KILN_API kiln {

struct MathOptions {
  /// Flush subnormal numbers to 0; left out: as KernelOptions::ftz says.
  std::optional<bool> ftz = {};
};

// Of f32.

/// sqrt.approx.f32: relative error 2^-23; the root of a negative number is NaN.
Value sqrt(At x, const MathOptions &options = {});
/// rsqrt.approx.f32, 1 / sqrt(x): relative error 2^-22.9.
Value rsqrt(At x, const MathOptions &options = {});
/// rcp.approx.f32, 1 / x: error of 1 unit in the last place.
Value rcp(At x, const MathOptions &options = {});
/// ex2.approx.f32, 2 to the x: relative error 2^-22. exp(x) is
/// exp2(x * 1.442695).
Value exp2(At x, const MathOptions &options = {});
/// lg2.approx.f32: absolute error 2^-22 for x in (0.5, 2), else relative error
/// 2^-22. log(x) is log2(x) * 0.6931472.
Value log2(At x, const MathOptions &options = {});
/// tanh.approx.f32: relative error 2^-11. Subnormal numbers stay what they are.
Value tanh(At x);
/// sin.approx.f32, x in radians: absolute error 2^-20.5 in [-2 pi, 2 pi] and
/// growing outside.
Value sin(At x, const MathOptions &options = {});
/// cos.approx.f32, as sin.
Value cos(At x, const MathOptions &options = {});
/// div.approx.f32, a / b: error of 2 units in the last place for a divisor of
/// 2^-126 to 2^126; beyond that 0 (or NaN). `/` is rounded correctly, with a
/// branch for what lies outside: some ten instructions instead of two.
Value fast_divide(const Value &a, At b, const MathOptions &options = {});

// Of numbers.

/// Magnitude (abs) of a float or a signed integer; the least integer has none
/// and stays itself.
Value abs(At x);
/// a * b + c rounded once (fma.rn): f16, bf16, f32 and f64. Literals take the
/// type of `a`.
Value fma(const Value &a, At b, At c);

// Of the bits of integers; the result has the type of x.

/// popc: how many bits are 1.
Value popcount(At x);
/// clz: how many zeros stand before the first 1; all bits for 0.
Value count_leading_zeros(At x);
/// brev: the last bit first.
Value reverse_bits(At x);

/// The same bits read as another type of the same size (mov):
/// bitcast(x, u32) >> 31 is the sign of an f32.
Value bitcast(At x, Type type);

/// `cast` with its rounding said, one cvt:
///
///     from f32 or f64 to i32, u32, i64, u64   cvt.rmi.s32.f32 (floor)
///     from those integers to f32 or f64       cvt.rz.f32.s32
///     from f64 to f32                         cvt.rp.f32.f64
///     from f32 to f16 and bf16                cvt.rz.f16.f32
///     from f32 to tf32, not down or up        cvt.rz.tf32.f32
///
/// Integers out of range become the nearest one there is, as PTX has it.
Value cast(At value, Type type, Rounding rounding);

} // namespace kiln
