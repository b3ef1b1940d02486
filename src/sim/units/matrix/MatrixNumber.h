// MatrixNumber: elements of matrices as the numbers they are multiplied as.
#pragma once

#include "ptx/Ast.h"
#include "sim/units/scalar/Conversion.h"
#include "support/Half.h"

#include <algorithm>
#include <cmath>

namespace kiln::sim {

/// One element of A, B or C as the number it is multiplied or added as; the
/// last parameter only names the type.
inline float toNumber(std::uint64_t bits, ptx::ScalarType type, float) {
  switch (type) {
  case ptx::ScalarType::f16:
    return halfToFloat(static_cast<std::uint16_t>(bits));
  case ptx::ScalarType::bf16:
    return bfloatToFloat(static_cast<std::uint16_t>(bits));
  case ptx::ScalarType::tf32: // the hardware does not look at the low bits
    return std::bit_cast<float>(std::uint32_t(bits) & 0xffffe000u);
  case ptx::ScalarType::e4m3:
    return static_cast<float>(decode(kFormatE4m3, std::uint8_t(bits)));
  case ptx::ScalarType::e5m2:
    return static_cast<float>(decode(kFormatE5m2, std::uint8_t(bits)));
  default:
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  }
}
inline double toNumber(std::uint64_t bits, ptx::ScalarType, double) {
  return std::bit_cast<double>(bits);
}
inline std::int64_t toNumber(std::uint64_t bits, ptx::ScalarType type,
                             std::int64_t) {
  if (type == ptx::ScalarType::u8)
    return static_cast<std::uint8_t>(bits);
  if (type == ptx::ScalarType::s8)
    return static_cast<std::int8_t>(bits);
  return static_cast<std::int32_t>(bits);
}

/// The bits of a result.
inline std::uint64_t fromNumber(float value, ptx::ScalarType type, bool) {
  if (type == ptx::ScalarType::f16)
    return floatToHalf(value);
  return std::bit_cast<std::uint32_t>(canonical(value));
}
inline std::uint64_t fromNumber(double value, ptx::ScalarType, bool) {
  return std::bit_cast<std::uint64_t>(value);
}
inline std::uint64_t fromNumber(std::int64_t value, ptx::ScalarType,
                                bool isSaturated) {
  if (isSaturated)
    value = std::clamp<std::int64_t>(value, INT32_MIN, INT32_MAX);
  return static_cast<std::uint32_t>(value);
}

} // namespace kiln::sim
