// buffer_compare: |got - want| <= atol + rtol |want|, or bit for bit.
#include "buffer_compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln::cli {

/// Mismatches that are shown.
static constexpr std::size_t kShown = 8;

/// The number of those bits. A long double holds every 64-bit integer.
static long double number(Type type, std::uint64_t bits) {
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
static std::string element(const BufferSpec &buffer, std::uint64_t i) {
  std::vector<std::uint64_t> at(buffer.shape.size());
  for (std::size_t axis = at.size(); axis-- > 0; i /= buffer.shape[axis])
    at[axis] = i % buffer.shape[axis];
  return fmt::format("{}[{}]", buffer.name, fmt::join(at, ", "));
}

static std::string describe(const BufferSpec &buffer, std::uint64_t i,
                            std::uint64_t got, std::uint64_t want) {
  Type type = buffer.type;
  std::string text = fmt::format("{} is {}, should be {}", element(buffer, i),
                                 show(type, got), show(type, want));
  const Tolerance &tolerance = buffer.tolerance;
  int digits = 2 * size_bytes(type);
  if (tolerance.is_exact)
    return text + fmt::format(" exactly (bits {:0{}x} and {:0{}x})", got,
                              digits, want, digits);
  if (std::isnan(number(type, want)))
    return text + ", and no NaN is within a tolerance; \"exact\" compares bits";
  double allowed =
      tolerance.atol +
      tolerance.rtol * static_cast<double>(std::fabs(number(type, want)));
  return allowed > 0 ? text + fmt::format(" within {:.3g}", allowed) : text;
}

static bool is_equal(const BufferSpec &buffer, std::uint64_t got_bits,
                     std::uint64_t want_bits) {
  const Tolerance &tolerance = buffer.tolerance;
  if (tolerance.is_exact)
    return got_bits == want_bits;
  long double got = number(buffer.type, got_bits);
  long double want = number(buffer.type, want_bits);
  if (got == want) // infinities too
    return true;
  if (std::isinf(want) || std::isinf(got))
    return false;
  return std::fabs(got - want) <=
         tolerance.atol + tolerance.rtol * std::fabs(want);
}

BufferComparison compare_buffer(const BufferSpec &buffer,
                                const std::vector<std::byte> &got,
                                const std::vector<std::byte> &want) {
  BufferComparison result;
  auto size = static_cast<std::size_t>(size_bytes(buffer.type));
  for (std::uint64_t i = 0; i < buffer.count; ++i) {
    std::uint64_t got_bits = 0, want_bits = 0;
    std::memcpy(&got_bits, got.data() + i * size, size);
    std::memcpy(&want_bits, want.data() + i * size, size);
    if (is_equal(buffer, got_bits, want_bits))
      continue;
    ++result.wrong;
    if (result.first.size() < kShown)
      result.first.push_back(describe(buffer, i, got_bits, want_bits));
  }
  return result;
}

} // namespace kiln::cli
