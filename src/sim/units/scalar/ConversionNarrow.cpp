// ConversionNarrow: cvt into and out of floats of 6 and 4 bits and powers of
// two, and the stochastic rounding of all narrow floats.
//
// Elements lie in containers of 16, 8 or 4 bits; the first operand, or the
// first of a vector, is the uppermost.
#include "sim/units/scalar/Conversion.h"
#include "sim/units/scalar/Float.h"

#include <cmath>

namespace kiln::sim {

namespace {
/// A type of two or four elements in a register.
struct PackedFormat {
  const FloatFormat *format; ///< null: ue8m0
  int container;             ///< bits of an element
  int count;
};

struct NarrowConversion {
  PackedFormat to;
  std::optional<PackedFormat> from; ///< nothing: of f32
  Rounding rounding = Rounding::nearest_even;
  bool isRelu = false, isFinite = false;
  int randomBits = 0; ///< of each element; 0: it is not stochastic
};
} // namespace

/// Nothing: it is no such type.
static std::optional<PackedFormat> packedFormat(ptx::ScalarType type) {
  using enum ptx::ScalarType;
  switch (type) {
  case f16x2:
    return PackedFormat{&kFormatF16, 16, 2};
  case bf16x2:
    return PackedFormat{&kFormatBf16, 16, 2};
  case e4m3x4:
    return PackedFormat{&kFormatE4m3, 8, 4};
  case e5m2x4:
    return PackedFormat{&kFormatE5m2, 8, 4};
  case e2m3x2:
    return PackedFormat{&kFormatE2m3, 8, 2};
  case e2m3x4:
    return PackedFormat{&kFormatE2m3, 8, 4};
  case e3m2x2:
    return PackedFormat{&kFormatE3m2, 8, 2};
  case e3m2x4:
    return PackedFormat{&kFormatE3m2, 8, 4};
  case e2m1x2:
    return PackedFormat{&kFormatE2m1, 4, 2};
  case e2m1x4:
    return PackedFormat{&kFormatE2m1, 4, 4};
  case ue8m0x2:
    return PackedFormat{nullptr, 8, 2};
  default:
    return std::nullopt;
  }
}

bool isNarrowConversion(const ptx::Instruction &instruction) {
  using enum ptx::ScalarType;
  for (ptx::ScalarType type : allTypes(instruction))
    if (type >= e2m3x2)
      return true;
  return instruction.has("rs");
}

/// An exponent of 8 bits: the sign is dropped, and what is not a power of two
/// goes to the one below or above.
static std::uint32_t encodePower(double value, bool isUp, bool isFinite) {
  constexpr std::uint32_t kNan = 255;
  constexpr int kBias = 127;
  if (std::isnan(value))
    return kNan;
  double magnitude = std::fabs(value);
  std::uint32_t power = 0;
  if (std::isinf(magnitude)) {
    power = kNan;
  } else if (magnitude > 0) {
    int exponent = std::max(std::ilogb(magnitude), -kBias);
    if (magnitude < std::ldexp(1.0, 1 - kBias))
      exponent = -kBias; // below the normal floats
    power = static_cast<std::uint32_t>(exponent + kBias);
    if (isUp && magnitude > std::ldexp(1.0, exponent))
      ++power;
  }
  return isFinite ? std::min(power, kNan - 1) : power;
}

static double decodePower(std::uint32_t bits) {
  return bits == 255 ? NAN : std::ldexp(1.0, static_cast<int>(bits) - 127);
}

/// `fraction` of the last place is added to the magnitude before it is cut.
static std::uint32_t encodeStochastic(const FloatFormat &format, double value,
                                      double fraction, bool isFinite) {
  if (value == 0 || !std::isfinite(value))
    return encode(format, value, Rounding::nearest_even, isFinite);
  double magnitude = std::fabs(value);
  int exponent = std::max(std::ilogb(magnitude), 1 - format.bias());
  double place = std::ldexp(1.0, exponent - format.mantissaBits);
  double cut = std::floor(magnitude / place + fraction) * place;
  return encode(format, std::copysign(cut, value), Rounding::nearest_even,
                isFinite);
}

static std::uint32_t convertOne(const NarrowConversion &conversion,
                                double value, std::uint32_t random) {
  if (conversion.isRelu)
    value = rectify(value);
  if (!conversion.to.format)
    return encodePower(value, conversion.rounding == Rounding::up,
                       conversion.isFinite);
  if (conversion.randomBits)
    return encodeStochastic(*conversion.to.format, value,
                            std::ldexp(random, -conversion.randomBits),
                            conversion.isFinite);
  return encode(*conversion.to.format, value, conversion.rounding,
                conversion.isFinite);
}

/// src[0]: random bits, an equal part of the word for each element, of which
/// the low ones count. list: the floats.
static Step executeFromFloats(Warp &warp, const Op &op, LaneMask active) {
  const auto &conversion =
      *static_cast<const NarrowConversion *>(op.extra.get());
  int count = conversion.to.count;
  std::uint32_t mask = (1u << conversion.randomBits) - 1;
  storeLanes<std::uint32_t>(warp, op.dst, active, [&](int lane) {
    std::uint32_t result = 0, random = 0;
    if (op.src[0].isValid())
      random = static_cast<std::uint32_t>(warp.read(op.src[0], lane));
    for (int i = 0; i < count; ++i) {
      const Reg &from = op.list[static_cast<std::size_t>(count - 1 - i)];
      auto bits = static_cast<std::uint32_t>(warp.read(from, lane));
      result |= convertOne(conversion, std::bit_cast<float>(bits),
                           random >> 32 / count * i & mask)
                << conversion.to.container * i;
    }
    return result;
  });
  return Step::next;
}

/// src[0]: a packed register.
static Step executeFromPacked(Warp &warp, const Op &op, LaneMask active) {
  const auto &conversion =
      *static_cast<const NarrowConversion *>(op.extra.get());
  const PackedFormat &from = *conversion.from;
  std::uint32_t mask = (1u << from.container) - 1;
  storeLanes<std::uint32_t>(warp, op.dst, active, [&](int lane) {
    auto word = static_cast<std::uint32_t>(warp.read(op.src[0], lane));
    std::uint32_t result = 0;
    for (int i = 0; i < conversion.to.count; ++i) {
      std::uint32_t bits = word >> from.container * i & mask;
      if (from.format) // what is above the element is not looked at
        bits &= (1u << from.format->bits()) - 1;
      result |= convertOne(conversion,
                           from.format ? decode(*from.format, bits)
                                       : decodePower(bits),
                           0)
                << conversion.to.container * i;
    }
    return result;
  });
  return Step::next;
}

/// d, a, b; with .rs also random bits, and for four {a, b, e, f}.
static void decodeFromFloats(Decoder &decoder,
                             const ptx::Instruction &instruction,
                             NarrowConversion &conversion, Op &op) {
  const auto &operands = instruction.operands;
  std::size_t at = 1;
  auto take = [&](const ptx::Operand &operand) {
    op.list.push_back(source<float>(decoder, instruction, operand));
  };
  if (conversion.to.count == 2) {
    take(operands[at++]);
    take(operands[at++]);
  } else {
    for (const ptx::Operand &element : operands[at++].elements)
      take(element);
    if (op.list.size() != 4)
      decoder.refuse(instruction,
                     fmt::format("a vector of {} floats; it takes 4",
                                 op.list.size()));
  }
  if (instruction.has("rs")) {
    op.src[0] = source<std::uint32_t>(decoder, instruction, operands[at]);
    // As many as f16 drops of an f32; else the element's part of the word.
    conversion.randomBits =
        conversion.to.format == &kFormatF16 ? 13 : 32 / conversion.to.count;
  }
  op.handler = executeFromFloats;
}

void decodeNarrowConversion(Decoder &decoder,
                            const ptx::Instruction &instruction, Op &op) {
  using enum ptx::ScalarType;
  std::vector<ptx::ScalarType> types = allTypes(instruction);
  ptx::ScalarType to = types[0], from = types[1];
  bool isToWide = to == f16x2 || to == bf16x2;
  NarrowConversion conversion;
  conversion.to = *packedFormat(to);
  conversion.rounding = floatRounding(instruction);
  conversion.isRelu = instruction.has("relu");
  conversion.isFinite = instruction.has("satfinite");
  if (!isToWide && to != ue8m0x2 && !conversion.isFinite)
    decoder.refuse(instruction, "floats of 4, 6 and 8 bits need .satfinite");
  if (to == ue8m0x2 && !instruction.has("rz") && !instruction.has("rp"))
    decoder.refuse(instruction, "ue8m0x2 takes .rz or .rp");
  op.dst = destination(decoder, instruction, instruction.operands[0],
                       ptx::sizeBytes(to));
  if (from == f32) {
    decodeFromFloats(decoder, instruction, conversion, op);
  } else {
    conversion.from = packedFormat(from);
    bool isPair = conversion.from && conversion.from->count == 2 &&
                  conversion.to.count == 2;
    bool isKnown = isToWide ? from >= e2m3x2 &&
                                  (from != ue8m0x2 || to == bf16x2)
                            : from == f16x2 || from == bf16x2;
    if (to == ue8m0x2)
      isKnown = from == bf16x2;
    if (!isPair || !isKnown)
      decoder.refuse(instruction, "pairs of 6- and 4-bit floats are made of "
                                  "f32 or of pairs of 16 bits and back, those "
                                  "of ue8m0 of f32 or bf16x2 and back");
    op.src[0] = decoder.reg(instruction.operands[1], ptx::sizeBytes(from));
    op.handler = executeFromPacked;
  }
  op.extra = std::make_shared<NarrowConversion>(conversion);
}

} // namespace kiln::sim
