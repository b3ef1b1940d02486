// ConversionPacked: cvt into and out of pairs of 16-bit and 8-bit floats.
#include "sim/units/scalar/Conversion.h"
#include "sim/units/scalar/Float.h"

#include <array>

namespace kiln::sim {

namespace {

/// op.flags
constexpr std::uint32_t kRelu = 1, kFinite = 2;

/// The format of one element of a pair.
const FloatFormat &elementFormat(ptx::ScalarType type) {
  using enum ptx::ScalarType;
  switch (type) {
  case f16x2:
    return kFormatF16;
  case bf16x2:
    return kFormatBf16;
  case e4m3x2:
    return kFormatE4m3;
  default:
    return kFormatE5m2;
  }
}

struct PackedConversion {
  FloatFormat from, to;
  Rounding rounding;
};

} // namespace

/// cvt.rn.f16x2.f32 d, a, b without options: a is the upper half.
template <bool isBfloat> static std::uint32_t packFloats(float a, float b) {
  return std::uint32_t(narrow<isBfloat>(a)) << 16 | narrow<isBfloat>(b);
}

static std::uint32_t
convertOne(const Op &op, const PackedConversion &conversion, double value) {
  if (op.flags & kRelu)
    value = rectify(value);
  return encode(conversion.to, value, conversion.rounding, op.flags & kFinite);
}

/// From two floats.
static Step executeFloats(Warp &warp, const Op &op, LaneMask active) {
  const auto &conversion =
      *static_cast<const PackedConversion *>(op.extra.get());
  const std::uint32_t *a = warp.lanes<std::uint32_t>(op.src[0]);
  const std::uint32_t *b = warp.lanes<std::uint32_t>(op.src[1]);
  storeLanes<std::uint32_t>(warp, op.dst, active, [&](int lane) {
    std::uint32_t high =
        convertOne(op, conversion, std::bit_cast<float>(a[lane]));
    std::uint32_t low =
        convertOne(op, conversion, std::bit_cast<float>(b[lane]));
    return high << conversion.to.bits() | low;
  });
  return Step::next;
}

/// From a pair to a pair.
static Step executePair(Warp &warp, const Op &op, LaneMask active) {
  const auto &conversion =
      *static_cast<const PackedConversion *>(op.extra.get());
  const std::uint32_t *a = warp.lanes<std::uint32_t>(op.src[0]);
  int bits = conversion.from.bits();
  std::uint32_t mask = (1u << bits) - 1;
  storeLanes<std::uint32_t>(warp, op.dst, active, [&](int lane) {
    std::uint32_t high = convertOne(
        op, conversion, decode(conversion.from, a[lane] >> bits & mask));
    std::uint32_t low =
        convertOne(op, conversion, decode(conversion.from, a[lane] & mask));
    return high << conversion.to.bits() | low;
  });
  return Step::next;
}

/// Two floats to a pair.
static void decodeFloatsToPair(Decoder &decoder,
                               const ptx::Instruction &instruction,
                               ptx::ScalarType to, Op &op) {
  bool isPlain =
      op.flags == 0 && floatRounding(instruction) == Rounding::nearest_even;
  if (isPlain && to == ptx::ScalarType::f16x2)
    return decodeLanewise<std::uint32_t, float, float>(
        decoder, instruction, op,
        [](float a, float b) { return packFloats<false>(a, b); });
  if (isPlain && to == ptx::ScalarType::bf16x2)
    return decodeLanewise<std::uint32_t, float, float>(
        decoder, instruction, op,
        [](float a, float b) { return packFloats<true>(a, b); });
  op.dst = destination(decoder, instruction, instruction.operands[0],
                       ptx::sizeBytes(to));
  for (int i = 0; i < 2; ++i)
    op.src[i] =
        source<float>(decoder, instruction, instruction.operands[i + 1]);
  op.handler = executeFloats;
}

void decodePackedConversion(Decoder &decoder,
                            const ptx::Instruction &instruction, Op &op) {
  std::vector<ptx::ScalarType> types = allTypes(instruction);
  ptx::ScalarType to = types[0], from = types[1];
  using enum ptx::ScalarType;
  bool isEightBits = to == e4m3x2 || to == e5m2x2;
  if (isEightBits && !instruction.has("satfinite"))
    decoder.refuse(instruction, "8-bit floats need .satfinite");
  op.flags = (instruction.has("relu") ? kRelu : 0) |
             (instruction.has("satfinite") ? kFinite : 0);
  bool isFromEight = from == e4m3x2 || from == e5m2x2;
  bool isKnown =
      (from == f32 && (isEightBits || to == f16x2 || to == bf16x2)) ||
      (isEightBits && (from == f16x2 || from == bf16x2)) ||
      (isFromEight && (to == f16x2 || to == bf16x2));
  if (!isKnown)
    decoder.refuse(instruction, "pairs are made of f32, and 8-bit pairs of "
                                "16-bit pairs and back");
  auto conversion = std::make_shared<PackedConversion>();
  conversion->to = elementFormat(to);
  conversion->rounding = floatRounding(instruction);
  if (from == f32) {
    op.extra = conversion;
    return decodeFloatsToPair(decoder, instruction, to, op);
  }
  conversion->from = elementFormat(from);
  op.extra = conversion;
  op.dst = destination(decoder, instruction, instruction.operands[0],
                       ptx::sizeBytes(to));
  op.src[0] =
      expectWidth(decoder, instruction,
                  decoder.reg(instruction.operands[1], ptx::sizeBytes(from)),
                  ptx::sizeBytes(from));
  op.handler = executePair;
}

} // namespace kiln::sim
