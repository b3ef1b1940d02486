// ConversionInteger: cvt with an integer on at least one side.
#include "sim/units/scalar/Conversion.h"
#include "sim/units/scalar/Float.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace kiln::sim {

/// The value of S nearest to it in D.
template <typename D, typename S> static D clampTo(S value) {
  using Limits = std::numeric_limits<D>;
  if (std::cmp_less(value, Limits::min()))
    return Limits::min();
  if (std::cmp_greater(value, Limits::max()))
    return Limits::max();
  return D(value);
}

template <typename D, typename S, bool isSaturated>
static Step executeIntegers(Warp &warp, const Op &op, LaneMask active) {
  alignas(64) S values[kLanes];
  alignas(64) D results[kLanes];
  loadLanes(warp, op.src[0], values);
  for (int lane = 0; lane < kLanes; ++lane) {
    if constexpr (isSaturated)
      results[lane] = clampTo<D>(values[lane]);
    else
      results[lane] = D(values[lane]);
  }
  storeIntegers(warp, op.dst, active, results);
  return Step::next;
}

void decodeIntegerToInteger(Decoder &decoder,
                            const ptx::Instruction &instruction, Op &op) {
  std::vector<ptx::ScalarType> types = allTypes(instruction);
  op.dst = conversionDestination(decoder, instruction, types[0]);
  op.src[0] =
      conversionSource(decoder, instruction, instruction.operands[1], types[1]);
  bool isSaturated = instruction.has("sat");
  withAnyInteger(decoder, instruction, types[0], [&]<typename D>() {
    withAnyInteger(decoder, instruction, types[1], [&]<typename S>() {
      op.handler = isSaturated ? widest<executeIntegers<D, S, true>>()
                               : widest<executeIntegers<D, S, false>>();
    });
  });
}

/// Into f32 or f64, in the host's rounding mode.
template <typename D, typename S>
static Step executeToFloat(Warp &warp, const Op &op, LaneMask active) {
  alignas(64) S values[kLanes];
  loadLanes(warp, op.src[0], values);
  storeLanes<D>(warp, op.dst, active,
                [&](int lane) { return D(values[lane]); });
  return Step::next;
}

template <typename D, typename S>
static Step executeToFloatSaturated(Warp &warp, const Op &op, LaneMask active) {
  alignas(64) S values[kLanes];
  loadLanes(warp, op.src[0], values);
  storeLanes<D>(warp, op.dst, active,
                [&](int lane) { return values[lane] > 0 ? D(1) : D(0); });
  return Step::next;
}

void decodeIntegerToFloat(Decoder &decoder, const ptx::Instruction &instruction,
                          Op &op) {
  std::vector<ptx::ScalarType> types = allTypes(instruction);
  bool isDouble = types[0] == ptx::ScalarType::f64;
  op.dst = destination(decoder, instruction, instruction.operands[0],
                       isDouble ? 8 : 4);
  op.src[0] =
      conversionSource(decoder, instruction, instruction.operands[1], types[1]);
  withAnyInteger(decoder, instruction, types[1], [&]<typename S>() {
    if (instruction.has("sat"))
      op.handler = isDouble ? executeToFloatSaturated<double, S>
                            : executeToFloatSaturated<float, S>;
    else if (isDouble)
      op.handler = roundedHandler<executeToFloat<double, S>>(instruction);
    else
      op.handler = roundedHandler<executeToFloat<float, S>>(instruction);
  });
}

namespace {
enum class Integral { nearest, zero, down, up };
/// op.flags: the source's type, and .ftz.
constexpr std::uint32_t kFlush = 0x100;
} // namespace

template <Integral integral> static double toIntegral(double value) {
  switch (integral) {
  case Integral::nearest:
    return std::nearbyint(value);
  case Integral::zero:
    return std::trunc(value);
  case Integral::down:
    return std::floor(value);
  case Integral::up:
    return std::ceil(value);
  }
}

/// What NaN becomes: zero, or, where 64 bits are on either side, the top bit.
template <typename D> static D ofNan(bool isDouble) {
  if (!isDouble && sizeof(D) < 8)
    return 0;
  return D(std::uint64_t(1) << (8 * sizeof(D) - 1));
}

/// Out of range is the nearest value in it.
template <typename D, Integral integral>
static Step executeToInteger(Warp &warp, const Op &op, LaneMask active) {
  using Limits = std::numeric_limits<D>;
  // The first value above the range: a power of two, which a double holds.
  constexpr double above =
      2.0 * double(std::uint64_t(1) << (Limits::digits - 1));
  constexpr double least = double(Limits::min());
  ptx::ScalarType type = ptx::ScalarType(op.flags & 0xff);
  alignas(64) double values[kLanes];
  alignas(64) D results[kLanes];
  loadDoubles(warp, op.src[0], type, op.flags & kFlush, values);
  D nan = ofNan<D>(type == ptx::ScalarType::f64);
  for (int lane = 0; lane < kLanes; ++lane) {
    double value = toIntegral<integral>(values[lane]);
    D result = value >= above   ? Limits::max()
               : value <= least ? Limits::min()
               : value == value ? D(value)
                                : nan;
    results[lane] = result;
  }
  storeIntegers(warp, op.dst, active, results);
  return Step::next;
}

void decodeFloatToInteger(Decoder &decoder, const ptx::Instruction &instruction,
                          Op &op) {
  std::vector<ptx::ScalarType> types = allTypes(instruction);
  op.dst = conversionDestination(decoder, instruction, types[0]);
  const ptx::Operand &from = instruction.operands[1];
  op.src[0] = conversionSource(decoder, instruction, from, types[1]);
  op.flags = std::uint32_t(types[1]) | (instruction.has("ftz") ? kFlush : 0);
  withAnyInteger(decoder, instruction, types[0], [&]<typename D>() {
    if (instruction.has("rni"))
      op.handler = executeToInteger<D, Integral::nearest>;
    else if (instruction.has("rmi"))
      op.handler = executeToInteger<D, Integral::down>;
    else if (instruction.has("rpi"))
      op.handler = executeToInteger<D, Integral::up>;
    else if (instruction.has("rzi"))
      op.handler = executeToInteger<D, Integral::zero>;
    else
      decoder.refuse(instruction, "a float becomes an integer by .rni .rzi "
                                  ".rmi or .rpi");
  });
}

/// cvt.pack to fewer than eight bits: {c, a, b}, a and b clamped to D's.
template <int bits, bool isToSigned, bool isSigned>
static std::uint32_t packBits(std::uint32_t a, std::uint32_t b,
                              std::uint32_t c) {
  using S = std::conditional_t<isSigned, std::int32_t, std::uint32_t>;
  static constexpr std::int64_t least = isToSigned ? -(1 << (bits - 1)) : 0;
  static constexpr std::int64_t most = (1 << (bits - (isToSigned ? 1 : 0))) - 1;
  auto clamped = [](std::uint32_t value) {
    return std::uint32_t(std::clamp<std::int64_t>(S(value), least, most)) &
           ((1u << bits) - 1);
  };
  return c << (2 * bits) | clamped(a) << bits | clamped(b);
}

template <int bits, bool isToSigned>
static void decodePackBits(Decoder &decoder,
                           const ptx::Instruction &instruction, bool isSigned,
                           Op &op) {
  using U = std::uint32_t;
  if (isSigned)
    return decodeLanewise<U, U, U, U>(
        decoder, instruction, op,
        [](U a, U b, U c) { return packBits<bits, isToSigned, true>(a, b, c); });
  decodeLanewise<U, U, U, U>(
      decoder, instruction, op,
      [](U a, U b, U c) { return packBits<bits, isToSigned, false>(a, b, c); });
}

/// cvt.pack: {c, a, b} of `bits` each for a and b, both clamped.
template <typename D, bool isSigned>
static std::uint32_t packIntegers(std::uint32_t a, std::uint32_t b,
                                  std::uint32_t c) {
  using S = std::conditional_t<isSigned, std::int32_t, std::uint32_t>;
  using U = std::make_unsigned_t<D>;
  constexpr int bits = 8 * sizeof(D);
  std::uint32_t high = U(clampTo<D>(S(a))), low = U(clampTo<D>(S(b)));
  std::uint32_t both = high << bits | low;
  return bits == 16 ? both : both | c << (2 * bits % 32);
}

template <typename D, bool isSigned>
static void decodePackAs(Decoder &decoder, const ptx::Instruction &instruction,
                         Op &op) {
  using U = std::uint32_t;
  if (sizeof(D) == 2)
    return decodeLanewise<U, U, U>(decoder, instruction, op, [](U a, U b) {
      return packIntegers<D, isSigned>(a, b, 0);
    });
  decodeLanewise<U, U, U, U>(decoder, instruction, op, [](U a, U b, U c) {
    return packIntegers<D, isSigned>(a, b, c);
  });
}

void decodeIntegerPack(Decoder &decoder, const ptx::Instruction &instruction,
                       Op &op) {
  std::vector<ptx::ScalarType> types = allTypes(instruction);
  if (types.size() < 2 || !instruction.has("sat"))
    decoder.refuse(instruction, "cvt.pack needs .sat and two types");
  bool isSigned = types[1] == ptx::ScalarType::s32;
  auto decode = [&]<typename D>() {
    if (isSigned)
      return decodePackAs<D, true>(decoder, instruction, op);
    decodePackAs<D, false>(decoder, instruction, op);
  };
  switch (types[0]) {
  case ptx::ScalarType::u16:
    return decode.operator()<std::uint16_t>();
  case ptx::ScalarType::s16:
    return decode.operator()<std::int16_t>();
  case ptx::ScalarType::u8:
    return decode.operator()<std::uint8_t>();
  case ptx::ScalarType::s8:
    return decode.operator()<std::int8_t>();
  case ptx::ScalarType::u4:
    return decodePackBits<4, false>(decoder, instruction, isSigned, op);
  case ptx::ScalarType::s4:
    return decodePackBits<4, true>(decoder, instruction, isSigned, op);
  case ptx::ScalarType::u2:
    return decodePackBits<2, false>(decoder, instruction, isSigned, op);
  case ptx::ScalarType::s2:
    return decodePackBits<2, true>(decoder, instruction, isSigned, op);
  default:
    decoder.refuse(instruction,
                   "cvt.pack makes u16 s16 u8 s8 u4 s4 u2 or s2");
  }
}

} // namespace kiln::sim
