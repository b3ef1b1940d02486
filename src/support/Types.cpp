// Types: what is known of each element type, and rounding to and from its bits.
//
// The simulator, the references in tests and the scalars of a launch all
// convert through here, so that a rounding question has one answer.
#include "kiln/base/types.h"

#include "support/Error.h"
#include "support/FloatFormat.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
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
static constexpr std::array<TypeInfo, 22> kTypes = {{
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
    {"e2m1", 4, Family::real},
    {"e2m3", 6, Family::real},
    {"e3m2", 6, Family::real},
    {"ue8m0", 8, Family::real},
    {"ue4m3", 8, Family::real},
}};
static_assert(static_cast<std::size_t>(Type::ue4m3) + 1 == kTypes.size());

/// The small floats with a sign; those of 8 bits and less saturate.
struct SmallFloat {
  Type type;
  const FloatFormat &format;
  bool isFinite;
  int shift; ///< where its bits begin
};
static constexpr std::array<SmallFloat, 8> kSmallFloats = {{
    {Type::f16, kFormatF16, false, 0},
    {Type::bf16, kFormatBf16, false, 0},
    {Type::tf32, kFormatTf32, false, kTf32Shift},
    {Type::e4m3, kFormatE4m3, true, 0},
    {Type::e5m2, kFormatE5m2, true, 0},
    {Type::e2m1, kFormatE2m1, true, 0},
    {Type::e2m3, kFormatE2m3, true, 0},
    {Type::e3m2, kFormatE3m2, true, 0},
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

bool is_subbyte(Type type) {
  return type == Type::e2m1 || type == Type::e2m3 || type == Type::e3m2;
}

/// Elements of 6 bits lie in groups of so many bytes, and as many elements.
static constexpr std::int64_t kSixBitGroup = 16;

std::int64_t bytes_of(Type type, std::int64_t count) {
  if (type == Type::e2m1)
    return (count + 1) / 2;
  if (is_subbyte(type))
    return (count + kSixBitGroup - 1) / kSixBitGroup * kSixBitGroup;
  return count * size_bytes(type);
}

std::int64_t elements_in(Type type, std::int64_t bytes) {
  return type == Type::e2m1 ? 2 * bytes : bytes / size_bytes(type);
}

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

static constexpr int kPowerBias = 127;
static constexpr std::uint64_t kNoPower = 0xff;

/// The nearest power of two; of two as near, the larger.
static std::uint64_t encodePower(double value) {
  if (std::isnan(value))
    return kNoPower;
  if (!(value > 0))
    return 0;
  if (std::isinf(value))
    return kNoPower - 1;
  int exponent = 0;
  double fraction = std::frexp(value, &exponent); // 0.5 to 1
  return static_cast<std::uint64_t>(
      std::clamp(exponent - (fraction < 0.75) + kPowerBias, 0,
                 static_cast<int>(kNoPower) - 1));
}

std::uint64_t to_bits(Type type, double value) {
  if (type == Type::ue8m0)
    return encodePower(value);
  if (type == Type::ue4m3)
    return to_bits(Type::e4m3, value < 0 ? 0 : value) & 0x7f;
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
  if (type == Type::ue8m0)
    return (bits & 0xff) == kNoPower
               ? NAN
               : std::ldexp(1.0, static_cast<int>(bits & 0xff) - kPowerBias);
  if (type == Type::ue4m3)
    return from_bits(Type::e4m3, bits & 0x7f);
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

/// Where element i begins in memory, in bits.
static std::int64_t firstBit(Type type, std::int64_t i) {
  if (type == Type::e2m1)
    return 4 * i;
  if (is_subbyte(type))
    return i / kSixBitGroup * (8 * kSixBitGroup) + i % kSixBitGroup * 6;
  return i * 8 * size_bytes(type);
}

std::uint64_t load_bits(Type type, const void *data, std::int64_t i) {
  std::int64_t first = firstBit(type, i);
  const auto *bytes = static_cast<const std::uint8_t *>(data) + first / 8;
  std::uint64_t bits = 0;
  if (!is_subbyte(type)) {
    std::memcpy(&bits, bytes, static_cast<std::size_t>(size_bytes(type)));
    return bits;
  }
  bits = bytes[0];
  if (first % 8 + size_bits(type) > 8)
    bits |= std::uint64_t{bytes[1]} << 8;
  return bits >> first % 8 & lowMask(size_bits(type));
}

void store_bits(Type type, void *data, std::int64_t i, std::uint64_t bits) {
  std::int64_t first = firstBit(type, i);
  auto *bytes = static_cast<std::uint8_t *>(data) + first / 8;
  if (!is_subbyte(type)) {
    std::memcpy(bytes, &bits, static_cast<std::size_t>(size_bytes(type)));
    return;
  }
  std::uint64_t mask = lowMask(size_bits(type)) << first % 8;
  std::uint64_t put = bits << first % 8 & mask;
  for (int byte = 0; byte < 2 && mask >> 8 * byte; ++byte)
    bytes[byte] = static_cast<std::uint8_t>(
        (bytes[byte] & ~(mask >> 8 * byte)) | put >> 8 * byte);
}

} // namespace kiln
