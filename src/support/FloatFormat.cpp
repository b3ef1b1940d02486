// FloatFormat: one rounding for every float format.
#include "support/FloatFormat.h"

#include <algorithm>
#include <cmath>

namespace kiln {

/// A magnitude, in units of the last place, as an integer.
static double roundUnits(double units, Rounding rounding, bool isNegative) {
  switch (rounding) {
  case Rounding::nearest_even:
    return std::nearbyint(units);
  case Rounding::nearest_away:
    return std::floor(units + 0.5);
  case Rounding::toward_zero:
    return std::floor(units);
  case Rounding::down:
    return isNegative ? std::ceil(units) : std::floor(units);
  case Rounding::up:
    return isNegative ? std::floor(units) : std::ceil(units);
  }
  return units;
}

std::uint32_t encode(const FloatFormat &format, double value, Rounding rounding,
                     bool isFinite) {
  if (std::isnan(value))
    return format.nan ? format.nan : format.maxFinite;
  bool isNegative = std::signbit(value);
  std::uint32_t sign = isNegative ? 1u << (format.bits() - 1) : 0;
  double magnitude = std::fabs(value);
  if (magnitude == 0)
    return sign;
  std::uint32_t beyond =
      isFinite || format.infinity == 0 ? format.maxFinite : format.infinity;
  if (std::isinf(magnitude))
    return sign | beyond;
  // Below the normal range the place of the last bit stays where it is.
  int exponent = std::max(std::ilogb(magnitude), 1 - format.bias());
  double units =
      roundUnits(std::ldexp(magnitude, format.mantissaBits - exponent),
                 rounding, isNegative);
  // The implicit bit is part of the units, and a carry runs into the exponent.
  std::uint64_t bits =
      (std::uint64_t(exponent + format.bias() - 1) << format.mantissaBits) +
      std::uint64_t(units);
  if (bits <= format.maxFinite)
    return sign | std::uint32_t(bits);
  bool isTowardsZero = rounding == Rounding::toward_zero ||
                       (rounding == Rounding::down && !isNegative) ||
                       (rounding == Rounding::up && isNegative);
  return sign | (isTowardsZero ? format.maxFinite : beyond);
}

double decode(const FloatFormat &format, std::uint32_t bits) {
  std::uint32_t signBit = 1u << (format.bits() - 1);
  std::uint32_t magnitude = bits & (signBit - 1);
  double sign = bits & signBit ? -1 : 1;
  if (magnitude > format.maxFinite)
    return magnitude == format.infinity ? sign * HUGE_VAL
                                        : std::copysign(NAN, sign);
  std::uint32_t field = magnitude >> format.mantissaBits;
  std::uint32_t fraction = magnitude & ((1u << format.mantissaBits) - 1);
  if (field == 0)
    return sign * std::ldexp(fraction, 1 - format.bias() - format.mantissaBits);
  return sign * std::ldexp((1u << format.mantissaBits) + fraction,
                           int(field) - format.bias() - format.mantissaBits);
}

} // namespace kiln
