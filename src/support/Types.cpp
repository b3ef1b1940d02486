// Types: what is known of each element type, and rounding to and from its bits.
//
// The simulator, the references in tests and the scalars of a launch all
// convert through here, so that a rounding question has one answer.
#include "kiln/types.h"

#include "support/Error.h"

#include <array>
#include <bit>
#include <cmath>
#include <fmt/ranges.h>
#include <limits>
#include <vector>

namespace kiln {

namespace {

enum class Family : std::uint8_t {
  boolean,
  signedInteger,
  unsignedInteger,
  real
};

struct TypeInfo {
  std::string_view name;
  int bits;
  Family family;
};

/// The small floats: value = mantissa * 2^(exponent - bias - mantissaBits).
struct FloatFormat {
  int mantissaBits;
  int exponentBits;
  std::uint64_t maxFinite; ///< bits of the largest finite value
  std::uint64_t nan;       ///< bits of a quiet NaN
  bool saturates;          ///< what is too large becomes maxFinite
  bool hasInfinity;        ///< the patterns above maxFinite begin with it

  int bias() const { return (1 << (exponentBits - 1)) - 1; }
  int signBit() const { return mantissaBits + exponentBits; }
};

} // namespace

/// In the order of `Type`.
static constexpr std::array<TypeInfo, 17> kTypes = {{
    {"i1", 1, Family::boolean},
    {"i8", 8, Family::signedInteger},
    {"i16", 16, Family::signedInteger},
    {"i32", 32, Family::signedInteger},
    {"i64", 64, Family::signedInteger},
    {"u8", 8, Family::unsignedInteger},
    {"u16", 16, Family::unsignedInteger},
    {"u32", 32, Family::unsignedInteger},
    {"u64", 64, Family::unsignedInteger},
    {"index", 64, Family::unsignedInteger},
    {"f16", 16, Family::real},
    {"bf16", 16, Family::real},
    {"tf32", 32, Family::real},
    {"f32", 32, Family::real},
    {"f64", 64, Family::real},
    {"e4m3", 8, Family::real},
    {"e5m2", 8, Family::real},
}};
static_assert(static_cast<std::size_t>(Type::e5m2) + 1 == kTypes.size());

static constexpr FloatFormat kF16 = {10, 5, 0x7bff, 0x7fff, false, true};
static constexpr FloatFormat kBf16 = {7, 8, 0x7f7f, 0x7fff, false, true};
/// The 19 bits the tensor core reads; they are the high ones of the 32 stored.
static constexpr FloatFormat kTf32 = {10, 8, 0x3fbff, 0x3ffff, false, true};
static constexpr FloatFormat kE4m3 = {3, 4, 0x7e, 0x7f, true, false};
static constexpr FloatFormat kE5m2 = {2, 5, 0x7b, 0x7f, true, true};
static constexpr int kTf32Shift = 13;

static const TypeInfo &infoOf(Type type) {
  auto position = static_cast<std::size_t>(type);
  if (position >= kTypes.size())
    internalError("there is no type number {}", position);
  return kTypes[position];
}

int size_bits(Type type) { return infoOf(type).bits; }

int size_bytes(Type type) { return (infoOf(type).bits + 7) / 8; }

bool is_float(Type type) { return infoOf(type).family == Family::real; }

bool is_signed_integer(Type type) {
  return infoOf(type).family == Family::signedInteger;
}

bool is_unsigned_integer(Type type) {
  return infoOf(type).family == Family::unsignedInteger;
}

std::string_view name(Type type) { return infoOf(type).name; }

Type parse_type(std::string_view text) {
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < kTypes.size(); ++i) {
    std::string_view name = kTypes[i].name;
    bool isSigned = kTypes[i].family == Family::signedInteger;
    // PTX writes s32.
    bool isAsInPtx =
        isSigned && text.starts_with('s') && text.substr(1) == name.substr(1);
    if (name == text || isAsInPtx)
      return static_cast<Type>(i);
    names.push_back(name);
  }
  userError("there is no type \"{}\"; the types are {}", text,
            fmt::join(names, ", "));
}

/// Round to nearest even. Written with the value scaled so that one unit is one
/// step of the format: a carry out of the mantissa then runs into the exponent
/// by itself, and subnormals are not a case of their own.
static std::uint64_t encode(const FloatFormat &format, double value) {
  std::uint64_t sign = std::uint64_t{std::signbit(value)} << format.signBit();
  if (std::isnan(value))
    return sign | format.nan;
  std::uint64_t tooLarge =
      format.saturates ? format.maxFinite : format.maxFinite + 1;
  if (std::isinf(value))
    return sign | tooLarge;
  if (value == 0)
    return sign;
  int lowest = 1 - format.bias();
  int exponent = std::max(std::ilogb(value), lowest);
  double steps = std::nearbyint(
      std::ldexp(std::fabs(value), format.mantissaBits - exponent));
  std::uint64_t magnitude =
      (static_cast<std::uint64_t>(exponent - lowest) << format.mantissaBits) +
      static_cast<std::uint64_t>(steps);
  return sign | (magnitude > format.maxFinite ? tooLarge : magnitude);
}

static double decode(const FloatFormat &format, std::uint64_t bits) {
  std::uint64_t magnitude = bits & ((std::uint64_t{1} << format.signBit()) - 1);
  double sign = (bits >> format.signBit()) & 1 ? -1.0 : 1.0;
  if (magnitude > format.maxFinite) {
    bool isInfinity = format.hasInfinity && magnitude == format.maxFinite + 1;
    double special = isInfinity ? std::numeric_limits<double>::infinity()
                                : std::numeric_limits<double>::quiet_NaN();
    return std::copysign(special, sign);
  }
  std::uint64_t hidden = std::uint64_t{1} << format.mantissaBits;
  std::uint64_t steps = magnitude & (hidden - 1);
  int exponent = static_cast<int>(magnitude >> format.mantissaBits);
  if (exponent == 0)
    exponent = 1;
  else
    steps |= hidden;
  return sign * std::ldexp(static_cast<double>(steps),
                           exponent - format.bias() - format.mantissaBits);
}

/// The bits below `bits`, all set.
static std::uint64_t lowMask(int bits) {
  return bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
}

static std::uint64_t encodeSigned(int bits, double value) {
  if (std::isnan(value))
    return 0;
  double bound = std::ldexp(1.0, bits - 1);
  double rounded = std::nearbyint(value);
  std::uint64_t largest = lowMask(bits - 1);
  if (rounded >= bound)
    return largest;
  if (rounded < -bound)
    return largest + 1;
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(rounded)) &
         lowMask(bits);
}

static std::uint64_t encodeUnsigned(int bits, double value) {
  double rounded = std::nearbyint(value);
  if (!(rounded > 0))
    return 0;
  if (rounded >= std::ldexp(1.0, bits))
    return lowMask(bits);
  return static_cast<std::uint64_t>(rounded);
}

std::uint64_t to_bits(Type type, double value) {
  switch (type) {
  case Type::f16:
    return encode(kF16, value);
  case Type::bf16:
    return encode(kBf16, value);
  case Type::tf32:
    return encode(kTf32, value) << kTf32Shift;
  case Type::e4m3:
    return encode(kE4m3, value);
  case Type::e5m2:
    return encode(kE5m2, value);
  case Type::f32:
    return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  case Type::f64:
    return std::bit_cast<std::uint64_t>(value);
  default:
    break;
  }
  int bits = size_bits(type);
  return is_signed_integer(type) ? encodeSigned(bits, value)
                                 : encodeUnsigned(bits, value);
}

double from_bits(Type type, std::uint64_t bits) {
  switch (type) {
  case Type::f16:
    return decode(kF16, bits);
  case Type::bf16:
    return decode(kBf16, bits);
  case Type::tf32:
    return decode(kTf32, bits >> kTf32Shift);
  case Type::e4m3:
    return decode(kE4m3, bits);
  case Type::e5m2:
    return decode(kE5m2, bits);
  case Type::f32:
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  case Type::f64:
    return std::bit_cast<double>(bits);
  default:
    break;
  }
  int unused = 64 - size_bits(type);
  if (is_signed_integer(type))
    return static_cast<double>(static_cast<std::int64_t>(bits << unused) >>
                               unused);
  return static_cast<double>(bits << unused >> unused);
}

} // namespace kiln
