// ConversionFormat: one rounding for every float format.
#include "sim/units/scalar/Conversion.h"
#include "sim/units/scalar/Half.h"

#include <cmath>

namespace kiln::sim {

/// A magnitude, in units of the last place, as an integer.
static double roundUnits(double units, Rounding rounding, bool isNegative) {
  switch (rounding) {
  case Rounding::nearestEven:
    return std::nearbyint(units);
  case Rounding::nearestAway:
    return std::floor(units + 0.5);
  case Rounding::zero:
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
    return format.nan;
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
  bool isTowardsZero = rounding == Rounding::zero ||
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

/// An integer as a double; what does not fit leaves its trace in the last bit.
template <typename T> static double toOddDouble(T value) {
  if constexpr (sizeof(T) < 8)
    return double(value);
  bool isNegative = value < 0;
  std::uint64_t magnitude =
      isNegative ? 0 - std::uint64_t(value) : std::uint64_t(value);
  if (magnitude >> 53) {
    std::uint64_t lost = magnitude & 0x7ff;
    magnitude = (magnitude & ~std::uint64_t(0x7ff)) | (lost ? 0x800 : 0);
  }
  return isNegative ? -double(magnitude) : double(magnitude);
}

template <typename T>
static void loadIntegers(const Warp &warp, Reg reg, double *values) {
  T integers[kLanes];
  loadLanes(warp, reg, integers);
  for (int lane = 0; lane < kLanes; ++lane)
    values[lane] = toOddDouble(integers[lane]);
}

void loadDoubles(const Warp &warp, Reg reg, ptx::ScalarType type,
                 bool isFlushed, double *values) {
  using enum ptx::ScalarType;
  std::uint16_t halves[kLanes];
  float floats[kLanes];
  switch (type) {
  case f64:
    return loadLanes(warp, reg, values);
  case f32:
    loadLanes(warp, reg, floats);
    for (int lane = 0; lane < kLanes; ++lane)
      values[lane] = isFlushed ? canonical(flush(floats[lane])) : floats[lane];
    return;
  case f16:
    loadLanes(warp, reg, halves);
    for (int lane = 0; lane < kLanes; ++lane)
      values[lane] = halfToFloat(halves[lane]);
    return;
  case bf16:
    loadLanes(warp, reg, halves);
    for (int lane = 0; lane < kLanes; ++lane)
      values[lane] = bfloatToFloat(halves[lane]);
    return;
  case u8:
    return loadIntegers<std::uint8_t>(warp, reg, values);
  case s8:
    return loadIntegers<std::int8_t>(warp, reg, values);
  case u16:
    return loadIntegers<std::uint16_t>(warp, reg, values);
  case s16:
    return loadIntegers<std::int16_t>(warp, reg, values);
  case u32:
    return loadIntegers<std::uint32_t>(warp, reg, values);
  case s32:
    return loadIntegers<std::int32_t>(warp, reg, values);
  case u64:
    return loadIntegers<std::uint64_t>(warp, reg, values);
  default:
    return loadIntegers<std::int64_t>(warp, reg, values);
  }
}

Rounding floatRounding(const ptx::Instruction &instruction) {
  if (instruction.has("rna"))
    return Rounding::nearestAway;
  if (instruction.has("rz"))
    return Rounding::zero;
  if (instruction.has("rm"))
    return Rounding::down;
  if (instruction.has("rp"))
    return Rounding::up;
  return Rounding::nearestEven;
}

Reg conversionSource(Decoder &decoder, const ptx::Instruction &instruction,
                     const ptx::Operand &operand, ptx::ScalarType type) {
  if (type == ptx::ScalarType::f32)
    if (operand.kind == ptx::Operand::Kind::real)
      return source<float>(decoder, instruction, operand);
  int bytes = ptx::sizeBytes(type);
  Reg reg = decoder.reg(operand, bytes);
  if (reg.bytes < bytes)
    decoder.refuse(
        instruction,
        fmt::format("its source has {} bytes, the type {}", reg.bytes, bytes));
  return reg;
}

Reg conversionDestination(Decoder &decoder, const ptx::Instruction &instruction,
                          ptx::ScalarType type) {
  const ptx::Operand &operand = instruction.operands[0];
  int bytes = ptx::sizeBytes(type);
  if (operand.kind != ptx::Operand::Kind::reg)
    return destination(decoder, instruction, operand, bytes);
  Reg reg = decoder.reg(operand);
  if (reg.bytes < bytes)
    decoder.refuse(instruction,
                   fmt::format("its destination has {} bytes, the type {}",
                               reg.bytes, bytes));
  return reg;
}

} // namespace kiln::sim
