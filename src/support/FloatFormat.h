// FloatFormat: the float formats by their numbers of bits, and the one rounding
// into them.
#pragma once

#include "kiln/base/export.h"
#include "kiln/base/types.h"

#include <cstdint>

namespace KILN_API kiln {

/// A float format of at most 32 bits: value = mantissa * 2^(exponent - bias -
/// mantissaBits).
struct FloatFormat {
  int exponentBits, mantissaBits;
  std::uint32_t infinity;  ///< 0: it has none
  std::uint32_t maxFinite; ///< bits of the largest finite value
  std::uint32_t nan;       ///< bits of the one that arithmetic gives; 0: none

  int bias() const { return (1 << (exponentBits - 1)) - 1; }
  int bits() const { return 1 + exponentBits + mantissaBits; }
};

inline constexpr FloatFormat kFormatF32{8, 23, 0x7f800000, 0x7f7fffff,
                                        0x7fffffff};
/// The 19 bits the tensor core reads; they are the high ones of the 32 stored.
inline constexpr FloatFormat kFormatTf32{8, 10, 0x3fc00, 0x3fbff, 0x3ffff};
inline constexpr int kTf32Shift = 13;
inline constexpr FloatFormat kFormatF16{5, 10, 0x7c00, 0x7bff, 0x7fff};
inline constexpr FloatFormat kFormatBf16{8, 7, 0x7f80, 0x7f7f, 0x7fff};
inline constexpr FloatFormat kFormatE5m2{5, 2, 0x7c, 0x7b, 0x7f};
inline constexpr FloatFormat kFormatE4m3{4, 3, 0, 0x7e, 0x7f};
// Every pattern of these is a number.
inline constexpr FloatFormat kFormatE2m3{2, 3, 0, 0x1f, 0};
inline constexpr FloatFormat kFormatE3m2{3, 2, 0, 0x1f, 0};
inline constexpr FloatFormat kFormatE2m1{2, 1, 0, 0x7, 0};

/// Round `value` into `format`; `isFinite`: what is too large becomes the
/// largest finite value.
std::uint32_t encode(const FloatFormat &format, double value, Rounding rounding,
                     bool isFinite);
/// The value of those bits.
double decode(const FloatFormat &format, std::uint32_t bits);

} // namespace kiln
