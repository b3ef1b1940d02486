// ConversionFormat: sources of cvt as doubles, and the rounding it names.
#include "sim/units/scalar/Conversion.h"
#include "support/Half.h"

#include <cmath>

namespace kiln::sim {

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
    return Rounding::nearest_away;
  if (instruction.has("rz"))
    return Rounding::toward_zero;
  if (instruction.has("rm"))
    return Rounding::down;
  if (instruction.has("rp"))
    return Rounding::up;
  return Rounding::nearest_even;
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
