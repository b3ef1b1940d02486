// BufferCompare: |got - want| <= atol + rtol |want|, or bit for bit.
#include "kiln/check/launch_file.h"
#include "support/Error.h"

#include <cmath>
#include <cstring>
#include <fmt/ranges.h>

namespace kiln {

/// Mismatches that are shown.
static constexpr std::size_t kShownMismatches = 8;

/// The number of those bits. A long double holds every 64-bit integer.
static long double numberOf(Type type, std::uint64_t bits) {
  if (type == Type::i64)
    return static_cast<std::int64_t>(bits);
  if (type == Type::u64)
    return bits;
  return from_bits(type, bits);
}

static std::string show(Type type, std::uint64_t bits) {
  if (type == Type::i64)
    return fmt::format("{}", static_cast<std::int64_t>(bits));
  if (type == Type::u64)
    return fmt::format("{}", bits);
  if (!is_float(type))
    return fmt::format("{:.0f}", from_bits(type, bits));
  return fmt::format("{:.{}g}", from_bits(type, bits),
                     type == Type::f64 ? 17 : 9);
}

/// "out[3, 4]"
static std::string elementName(const BufferSpec &buffer, std::uint64_t i) {
  std::vector<std::uint64_t> at(buffer.shape.size());
  for (std::size_t axis = at.size(); axis-- > 0; i /= buffer.shape[axis])
    at[axis] = i % buffer.shape[axis];
  return fmt::format("{}[{}]", buffer.name, fmt::join(at, ", "));
}

static std::string describeMismatch(const BufferSpec &buffer, std::uint64_t i,
                                    std::uint64_t got, std::uint64_t want) {
  Type type = buffer.type;
  std::string text =
      fmt::format("{} is {}, should be {}", elementName(buffer, i),
                  show(type, got), show(type, want));
  const Tolerance &tolerance = buffer.tolerance;
  int digits = 2 * size_bytes(type);
  if (tolerance.is_exact)
    return text + fmt::format(" exactly (bits {:0{}x} and {:0{}x})", got,
                              digits, want, digits);
  if (std::isnan(numberOf(type, want)))
    return text + ", and no NaN is within a tolerance; \"exact\" compares bits";
  double allowed =
      tolerance.atol +
      tolerance.rtol * static_cast<double>(std::fabs(numberOf(type, want)));
  return allowed > 0 ? text + fmt::format(" within {:.3g}", allowed) : text;
}

static bool isWithin(const BufferSpec &buffer, std::uint64_t gotBits,
                     std::uint64_t wantBits) {
  const Tolerance &tolerance = buffer.tolerance;
  if (tolerance.is_exact)
    return gotBits == wantBits;
  long double got = numberOf(buffer.type, gotBits);
  long double want = numberOf(buffer.type, wantBits);
  if (got == want) // infinities too
    return true;
  if (std::isinf(want) || std::isinf(got))
    return false;
  return std::fabs(got - want) <=
         tolerance.atol + tolerance.rtol * std::fabs(want);
}

BufferComparison compare_buffer(const BufferSpec &buffer,
                                std::span<const std::byte> got,
                                std::span<const std::byte> want) {
  for (std::span<const std::byte> one : {got, want})
    if (one.size() != buffer.bytes())
      userError("the buffer '{}' has {} bytes, and {} are compared with it",
                buffer.name, buffer.bytes(), one.size());
  BufferComparison result;
  auto size = static_cast<std::size_t>(size_bytes(buffer.type));
  for (std::uint64_t i = 0, count = buffer.count(); i < count; ++i) {
    std::uint64_t gotBits = 0, wantBits = 0;
    std::memcpy(&gotBits, got.data() + i * size, size);
    std::memcpy(&wantBits, want.data() + i * size, size);
    if (isWithin(buffer, gotBits, wantBits))
      continue;
    ++result.wrong;
    if (result.first.size() < kShownMismatches)
      result.first.push_back(describeMismatch(buffer, i, gotBits, wantBits));
  }
  return result;
}

} // namespace kiln
