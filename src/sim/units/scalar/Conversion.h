// Conversion: the parts of cvt.
//
// cvt has some four hundred forms. The frequent ones are loops of their own;
// the others read any type into a double, which holds it exactly or rounded to
// odd, and round that once into the format of the destination.
#pragma once

#include "sim/units/Execute.h"
#include "support/FloatFormat.h"

namespace kiln::sim {

/// The lanes of a source as doubles, whatever its type: integers that a double
/// does not hold are rounded to odd. A register may be wider than the type.
/// `isFlushed` is about f32: an f16 is never subnormal as one.
void loadDoubles(const Warp &warp, Reg reg, ptx::ScalarType type,
                 bool isFlushed, double *values);

/// The rounding that .rn .rna .rz .rm .rp name.
Rounding floatRounding(const ptx::Instruction &instruction);

void decodeIntegerToInteger(Decoder &decoder,
                            const ptx::Instruction &instruction, Op &op);
void decodeIntegerToFloat(Decoder &decoder, const ptx::Instruction &instruction,
                          Op &op);
void decodeFloatToInteger(Decoder &decoder, const ptx::Instruction &instruction,
                          Op &op);
/// f16x2, bf16x2, e4m3x2, e5m2x2 on either side.
void decodePackedConversion(Decoder &decoder,
                            const ptx::Instruction &instruction, Op &op);
/// Floats of 6 and 4 bits, powers of two, and stochastic rounding.
bool isNarrowConversion(const ptx::Instruction &instruction);
void decodeNarrowConversion(Decoder &decoder,
                            const ptx::Instruction &instruction, Op &op);
/// cvt.pack.sat
void decodeIntegerPack(Decoder &decoder, const ptx::Instruction &instruction,
                       Op &op);

/// The lanes of `reg` as T, from lanes of 4 or 8 bytes.
template <typename T> void loadLanes(const Warp &warp, Reg reg, T *values) {
  if (reg.width == 8) {
    const std::uint64_t *lanes = warp.lanes<std::uint64_t>(reg);
    for (int lane = 0; lane < kLanes; ++lane)
      values[lane] = fromLane<T>(Storage<T>(lanes[lane]));
    return;
  }
  const std::uint32_t *lanes = warp.lanes<std::uint32_t>(reg);
  for (int lane = 0; lane < kLanes; ++lane)
    values[lane] = fromLane<T>(Storage<T>(lanes[lane]));
}

/// Write integers, extended by their sign or by zero to the register's size.
template <typename T>
void storeIntegers(Warp &warp, Reg reg, LaneMask active, const T *values) {
  using Extended =
      std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
  auto value = [=](int lane) { return Extended(values[lane]); };
  if (reg.bytes == 8)
    storeLanes<std::uint64_t>(warp, reg, active, value);
  else if (reg.bytes == 4)
    storeLanes<std::uint32_t>(warp, reg, active, value);
  else if (reg.bytes == 2)
    storeLanes<std::uint16_t>(warp, reg, active, value);
  else
    storeLanes<std::uint8_t>(warp, reg, active, value);
}

/// The source of a conversion: a register of the type's size or wider.
Reg conversionSource(Decoder &decoder, const ptx::Instruction &instruction,
                     const ptx::Operand &operand, ptx::ScalarType type);
/// The destination, of the type's size or wider.
Reg conversionDestination(Decoder &decoder, const ptx::Instruction &instruction,
                          ptx::ScalarType type);

/// Call `body.operator()<T>()` with the integer type of 8 to 64 bits.
template <typename Body>
void withAnyInteger(const Decoder &decoder, const ptx::Instruction &instruction,
                    ptx::ScalarType type, Body &&body) {
  using enum ptx::ScalarType;
  if (type == u8 || type == b8)
    return body.template operator()<std::uint8_t>();
  if (type == s8)
    return body.template operator()<std::int8_t>();
  withInteger(decoder, instruction, type, body);
}

} // namespace kiln::sim
