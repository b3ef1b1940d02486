// Half: 16-bit floats to and from float, in forms that vectorise.
//
// FloatFormat.h says the same for every format, one value at a time; these are
// for the inner loops, where a warp converts 32 of them.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace kiln {

inline constexpr std::uint32_t kFloatNan = 0x7fffffff; ///< PTX's canonical NaN
inline constexpr std::uint16_t kHalfNan = 0x7fff;

inline float halfToFloat(std::uint16_t half) {
  std::uint32_t magnitude = std::uint32_t(half & 0x7fff) << 13;
  // Exponents are 112 apart; multiplying makes subnormals normal, exactly.
  float finite = std::bit_cast<float>(magnitude) * 0x1p112f;
  std::uint32_t special = magnitude | 0x7f800000u;
  std::uint32_t bits = (half & 0x7c00) == 0x7c00
                           ? special
                           : std::bit_cast<std::uint32_t>(finite);
  return std::bit_cast<float>(bits | std::uint32_t(half & 0x8000) << 16);
}

/// Nearest, ties to even; NaN becomes the canonical one.
inline std::uint16_t floatToHalf(float value) {
  std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  std::uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffffu;
  // Normal: drop 13 bits with rounding; a carry runs into the exponent.
  std::uint32_t normal =
      (magnitude - 0x38000000u + 0xfff + (magnitude >> 13 & 1)) >> 13;
  // Subnormal: adding 0.5 leaves the value, rounded by the adder itself to
  // multiples of 2^-24, in the low bits.
  float shifted = std::bit_cast<float>(magnitude) + 0.5f;
  std::uint32_t subnormal = std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u;
  std::uint32_t result = magnitude < 0x38800000u ? subnormal : normal;
  result = magnitude >= 0x477ff000u ? 0x7c00u : result;
  result |= sign;
  return std::uint16_t(magnitude > 0x7f800000u ? kHalfNan : result);
}

inline float bfloatToFloat(std::uint16_t bfloat) {
  return std::bit_cast<float>(std::uint32_t(bfloat) << 16);
}

/// Nearest, ties to even; NaN becomes the canonical one.
inline std::uint16_t floatToBfloat(float value) {
  std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  std::uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  return std::uint16_t((bits & 0x7fffffffu) > 0x7f800000u ? kHalfNan : rounded);
}

/// The float that keeps what a later rounding to fewer bits has to know: where
/// the value does not fit, it is cut off and the last bit is set.
inline float toOddFloat(double value) {
  float nearest = float(value);
  std::uint32_t bits = std::bit_cast<std::uint32_t>(nearest);
  bool isInexact = double(nearest) != value && value == value;
  bool isAbove = std::fabs(double(nearest)) > std::fabs(value);
  std::uint32_t odd = (bits - (isAbove ? 1 : 0)) | 1;
  return std::bit_cast<float>(isInexact ? odd : bits);
}

/// a + b in double, the same way.
inline double addToOdd(double a, double b) {
  double sum = a + b;
  double virtualB = sum - a;
  double error = (a - (sum - virtualB)) + (b - virtualB);
  std::uint64_t bits = std::bit_cast<std::uint64_t>(sum);
  // The error points away from the sum's magnitude or towards it.
  bool isBelow = (error < 0) == (sum > 0);
  std::uint64_t odd = (bits - (isBelow ? 1 : 0)) | 1;
  bool isInexact = error != 0 && error == error;
  return std::bit_cast<double>(isInexact ? odd : bits);
}

/// The same in float, for numbers far from its limits.
inline float addToOdd(float a, float b) {
  float sum = a + b;
  float virtualB = sum - a;
  float error = (a - (sum - virtualB)) + (b - virtualB);
  std::uint32_t bits = std::bit_cast<std::uint32_t>(sum);
  std::uint32_t errorBits = std::bit_cast<std::uint32_t>(error);
  // The error points towards zero where its sign is another; neither 0 nor NaN.
  std::uint32_t isBelow = (errorBits ^ bits) >> 31;
  std::uint32_t odd = (bits - isBelow) | 1;
  bool isInexact = (errorBits & 0x7fffffffu) - 1 < 0x7f800000u;
  return std::bit_cast<float>(isInexact ? odd : bits);
}

/// Subnormals become zeros of their sign.
inline float flush(float value) {
  std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  return std::bit_cast<float>(bits & 0x7f800000u ? bits : bits & 0x80000000u);
}
inline std::uint16_t flushHalf(std::uint16_t half) {
  return half & 0x7c00 ? half : half & 0x8000;
}

inline bool isNan(float value) { return value != value; }
inline bool isNan(double value) { return value != value; }

/// NaN becomes the canonical one.
inline float canonical(float value) {
  return isNan(value) ? std::bit_cast<float>(kFloatNan) : value;
}
inline double canonical(double value) { return value; }

/// What an operation made of `operands`: a NaN of numbers is negative on the
/// GPU, as on x86, and positive on other hosts.
template <typename T, typename... Operands>
inline T madeOf(T result, Operands... operands) {
#if !defined(__x86_64__)
  if (isNan(result) && !(isNan(operands) || ...))
    return std::copysign(result, T(-1));
#endif
  return result;
}

} // namespace kiln
