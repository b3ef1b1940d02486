// Types: what is known of each element type, and rounding to and from its bits.
//
// The simulator, the references in tests and the scalars of a launch all
// convert through here, so that a rounding question has one answer.
#include "kiln/types.h"

#include "support/Error.h"
#include "support/FloatFormat.h"

#include <array>
#include <bit>
#include <cmath>
#include <fmt/ranges.h>
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

/// The small floats; e4m3 and e5m2 saturate.
struct SmallFloat {
  Type type;
  const FloatFormat &format;
  bool isFinite;
  int shift; ///< where its bits begin
};
static constexpr std::array<SmallFloat, 5> kSmallFloats = {{
    {Type::f16, kFormatF16, false, 0},
    {Type::bf16, kFormatBf16, false, 0},
    {Type::tf32, kFormatTf32, false, kTf32Shift},
    {Type::e4m3, kFormatE4m3, true, 0},
    {Type::e5m2, kFormatE5m2, true, 0},
}};

static const SmallFloat *smallFloat(Type type) {
  for (const SmallFloat &small : kSmallFloats)
    if (small.type == type)
      return &small;
  return nullptr;
}

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
  if (const SmallFloat *small = smallFloat(type))
    return std::uint64_t{encode(small->format, value, Rounding::nearest_even,
                                small->isFinite)}
           << small->shift;
  if (type == Type::f32)
    return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  if (type == Type::f64)
    return std::bit_cast<std::uint64_t>(value);
  int bits = size_bits(type);
  return is_signed_integer(type) ? encodeSigned(bits, value)
                                 : encodeUnsigned(bits, value);
}

double from_bits(Type type, std::uint64_t bits) {
  if (const SmallFloat *small = smallFloat(type))
    return decode(small->format,
                  static_cast<std::uint32_t>(bits >> small->shift));
  if (type == Type::f32)
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  if (type == Type::f64)
    return std::bit_cast<double>(bits);
  int unused = 64 - size_bits(type);
  if (is_signed_integer(type))
    return static_cast<double>(static_cast<std::int64_t>(bits << unused) >>
                               unused);
  return static_cast<double>(bits << unused >> unused);
}

} // namespace kiln
