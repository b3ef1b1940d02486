// Conversion: cvt between floats, and the table of the conversion unit.
#include "sim/units/scalar/Conversion.h"
#include "sim/units/scalar/Float.h"
#include "sim/units/scalar/ScalarPoison.h"

#include <cmath>

namespace kiln::sim {

namespace {

/// A conversion into a float of any kind, by way of a double.
struct FloatConversion {
  ptx::ScalarType from, to;
  const FloatFormat *format; ///< null: f64
  Rounding rounding;
  bool isFlushed, isSaturated, isRelu, isFinite;
  /// Rounded to an integer, and still a float.
  bool isIntegral;
  Rounding integralRounding;
};

} // namespace

/// The low bits of an f32 that tf32 does not have.
static constexpr std::uint32_t kTf32Dropped = 0x1fff;

/// cvt.rna.tf32.f32: infinities and NaNs are cut off, so that a NaN whose
/// payload is in the low bits becomes an infinity.
static std::uint32_t roundAway(std::uint32_t bits) {
  bool isFinite = (~bits & 0x7f800000u) != 0;
  return (bits + (isFinite ? (kTf32Dropped + 1) / 2 : 0)) & ~kTf32Dropped;
}

static double toIntegral(double value, Rounding rounding) {
  if (std::isnan(value))
    return value + value; // quiet, with its payload
  switch (rounding) {
  case Rounding::toward_zero:
    return std::trunc(value);
  case Rounding::down:
    return std::floor(value);
  case Rounding::up:
    return std::ceil(value);
  default:
    return std::nearbyint(value);
  }
}

/// A NaN of 64 bits keeps its sign and the top of its payload, quiet.
static std::uint32_t narrowNan(const FloatFormat &format, double value) {
  auto bits = std::bit_cast<std::uint64_t>(value);
  std::uint64_t payload = bits & 0xfffffffffffffu;
  std::uint32_t sign = std::signbit(value) ? 1u << (format.bits() - 1) : 0;
  return sign | format.infinity | 1u << (format.mantissaBits - 1) |
         static_cast<std::uint32_t>(payload >> (52 - format.mantissaBits));
}

/// One value, from a double to the bits of the destination.
static std::uint64_t convert(const FloatConversion &conversion, double value) {
  if (conversion.isIntegral)
    value = toIntegral(value, conversion.integralRounding);
  if (conversion.isSaturated)
    value = saturate(value);
  if (conversion.isRelu)
    value = rectify(value);
  if (!conversion.format)
    return std::bit_cast<std::uint64_t>(value);
  if (conversion.from == ptx::ScalarType::f64 && std::isnan(value))
    return narrowNan(*conversion.format, value);
  std::uint32_t bits = encode(*conversion.format, value, conversion.rounding,
                              conversion.isFinite);
  if (conversion.to == ptx::ScalarType::tf32)
    return std::isnan(value) ? kFloatNan & ~kTf32Dropped : bits << 13;
  if (conversion.isFlushed && conversion.to == ptx::ScalarType::f32)
    return std::bit_cast<std::uint32_t>(flush(std::bit_cast<float>(bits)));
  return bits;
}

static Step executeConversion(Warp &warp, const Op &op, LaneMask active) {
  const auto &conversion =
      *static_cast<const FloatConversion *>(op.extra.get());
  double values[kLanes];
  loadDoubles(warp, op.src[0], conversion.from, conversion.isFlushed, values);
  if (!conversion.format)
    storeLanes<std::uint64_t>(warp, op.dst, active, [&](int lane) {
      return convert(conversion, values[lane]);
    });
  else
    storeLanes<std::uint32_t>(warp, op.dst, active, [&](int lane) {
      return std::uint32_t(convert(conversion, values[lane]));
    });
  return Step::next;
}

/// The frequent conversions, without options: loops of their own.
static bool decodeFrequent(Decoder &decoder,
                           const ptx::Instruction &instruction,
                           ptx::ScalarType to, ptx::ScalarType from, Op &op) {
  using enum ptx::ScalarType;
  using U16 = std::uint16_t;
  for (const std::string &modifier : instruction.modifiers)
    if (modifier != "rn" && modifier != "f16" && modifier != "bf16" &&
        modifier != "f32" && modifier != "f64" && modifier != "rna" &&
        modifier != "tf32")
      return false;
  if (to == f32 && from == f16)
    decodeLanewise<float, U16>(decoder, instruction, op,
                               [](U16 a) { return canonical(halfToFloat(a)); });
  else if (to == f16 && from == f32)
    decodeLanewise<U16, float>(decoder, instruction, op,
                               [](float a) { return floatToHalf(a); });
  else if (to == f32 && from == bf16)
    decodeLanewise<float, U16>(decoder, instruction, op,
                               [](U16 a) { return bfloatToFloat(a); });
  else if (to == bf16 && from == f32)
    decodeLanewise<U16, float>(decoder, instruction, op,
                               [](float a) { return floatToBfloat(a); });
  else if (to == f64 && from == f32)
    decodeLanewise<double, float>(decoder, instruction, op,
                                  [](float a) { return double(a); });
  else if (to == f32 && from == f64)
    decodeLanewise<float, double>(decoder, instruction, op,
                                  [](double a) { return float(a); });
  else if (instruction.has("rna") && to == tf32 && from == f32)
    decodeLanewise<std::uint32_t, std::uint32_t>(
        decoder, instruction, op, [](std::uint32_t a) { return roundAway(a); });
  else
    return false;
  return true;
}

/// cvt of an f32 to an f32, which rounds to an integer, limits or flushes it:
/// the value is never between two floats.
template <bool isFlushed, bool isSaturated, typename Round>
static float convertSingle(float a, Round round) {
  if constexpr (isFlushed)
    a = flush(a);
  a = round(a);
  if constexpr (isSaturated)
    a = saturate(a);
  return canonical(isFlushed ? flush(a) : a);
}

static Handler singleHandler(const FloatConversion &conversion) {
  auto choose = [&]<typename Round>(Round) -> Handler {
    auto with = [&]<bool isFlushed, bool isSaturated>() {
      auto convert = [](float a) {
        return convertSingle<isFlushed, isSaturated>(a, Round{});
      };
      return widest<lanewise1<decltype(convert), float, float>>();
    };
    if (conversion.isFlushed)
      return conversion.isSaturated ? with.template operator()<true, true>()
                                    : with.template operator()<true, false>();
    return conversion.isSaturated ? with.template operator()<false, true>()
                                  : with.template operator()<false, false>();
  };
  if (!conversion.isIntegral)
    return choose([](float a) { return a; });
  switch (conversion.integralRounding) {
  case Rounding::toward_zero:
    return choose([](float a) { return std::trunc(a); });
  case Rounding::down:
    return choose([](float a) { return std::floor(a); });
  case Rounding::up:
    return choose([](float a) { return std::ceil(a); });
  default:
    return choose([](float a) { return std::nearbyint(a); });
  }
}

static const FloatFormat *formatOf(ptx::ScalarType type) {
  using enum ptx::ScalarType;
  switch (type) {
  case f16:
    return &kFormatF16;
  case bf16:
    return &kFormatBf16;
  case tf32:
    return &kFormatTf32;
  default:
    return type == f32 ? &kFormatF32 : nullptr;
  }
}

/// The .rni family on a float destination.
static void decodeIntegral(const ptx::Instruction &instruction,
                           FloatConversion &conversion) {
  const std::pair<const char *, Rounding> names[] = {
      {"rni", Rounding::nearest_even},
      {"rzi", Rounding::toward_zero},
      {"rmi", Rounding::down},
      {"rpi", Rounding::up}};
  for (auto [name, rounding] : names)
    if (instruction.has(name)) {
      conversion.isIntegral = true;
      conversion.integralRounding = rounding;
    }
}

static void decodeToFloat(Decoder &decoder, const ptx::Instruction &instruction,
                          ptx::ScalarType to, ptx::ScalarType from, Op &op) {
  if (decodeFrequent(decoder, instruction, to, from, op))
    return;
  auto conversion = std::make_shared<FloatConversion>();
  conversion->from = from;
  conversion->to = to;
  conversion->format = formatOf(to);
  conversion->rounding = floatRounding(instruction);
  conversion->isFlushed = instruction.has("ftz");
  conversion->isSaturated = instruction.has("sat");
  conversion->isRelu = instruction.has("relu");
  conversion->isFinite = instruction.has("satfinite");
  decodeIntegral(instruction, *conversion);
  op.dst = destination(decoder, instruction, instruction.operands[0],
                       ptx::sizeBytes(to));
  op.src[0] =
      conversionSource(decoder, instruction, instruction.operands[1], from);
  op.handler = executeConversion;
  bool isSingle = to == ptx::ScalarType::f32 && from == to &&
                  op.src[0].width == 4 && !conversion->isRelu &&
                  !conversion->isFinite;
  if (isSingle)
    op.handler = withReference(singleHandler(*conversion), executeConversion);
  op.extra = std::move(conversion);
}

static bool isPacked(ptx::ScalarType type) {
  using enum ptx::ScalarType;
  return type == f16x2 || type == bf16x2 || type == e4m3x2 || type == e5m2x2;
}

static void decodeCvt(Decoder &decoder, const ptx::Instruction &instruction,
                      Op &op) {
  if (instruction.has("pack"))
    return decodeIntegerPack(decoder, instruction, op);
  std::vector<ptx::ScalarType> types = allTypes(instruction);
  if (types.size() != 2)
    decoder.refuse(instruction, "one of its two types is not known here");
  if (isNarrowConversion(instruction))
    return decodeNarrowConversion(decoder, instruction, op);
  ptx::ScalarType to = types[0], from = types[1];
  if (isPacked(to) || isPacked(from))
    return decodePackedConversion(decoder, instruction, op);
  if (!isFloatType(to) && !isFloatType(from))
    return decodeIntegerToInteger(decoder, instruction, op);
  if (!isFloatType(to))
    return decodeFloatToInteger(decoder, instruction, op);
  bool isNative = to == ptx::ScalarType::f32 || to == ptx::ScalarType::f64;
  if (!isFloatType(from) && isNative)
    return decodeIntegerToFloat(decoder, instruction, op);
  decodeToFloat(decoder, instruction, to, from, op);
}

std::vector<Instruction> conversionInstructions() {
  return {
      {"cvt",
       decodeCvt,
       Unit::conversion,
       "between integers of 8 to 64 bits, f16, bf16, f32, f64, every "
       "rounding, .sat .ftz .relu; tf32; pairs f16x2, bf16x2, e4m3x2, "
       "e5m2x2, e2m3x2, e3m2x2, e2m1x2, ue8m0x2; .rs of pairs and fours; "
       ".pack.sat",
       "pack u16|s16, sat s32 u32 -> =u32 u32 u32; "
       "pack u8|s8|u4|s4|u2|s2, sat s32 u32 b32 -> =u32 u32 u32 u32; "
       "rs e4m3x4|e5m2x4|e2m3x4|e3m2x4|e2m1x4 f32, relu satfinite -> =t1 "
       "{t2}* b32; "
       "rs f16x2|bf16x2 f32, relu satfinite -> =t1 t2 t2 b32; "
       "f16x2|bf16x2|e4m3x2|e5m2x2|e2m3x2|e3m2x2|e2m1x2|ue8m0x2 f32, rn|rz|rp "
       "relu satfinite -> =t1 t2 t2; "
       "f16x2|bf16x2|e4m3x2|e5m2x2|e2m3x2|e3m2x2|e2m1x2|ue8m0x2, rn|rz|rp relu "
       "satfinite -> =t1 t2; "
       ", DATA f16 bf16 tf32 ROUND rna rni rzi rmi rpi ftz sat relu satfinite "
       "-> =~t1 ~t2%",
       {.poison = conversionPoison}}};
}

} // namespace kiln::sim
