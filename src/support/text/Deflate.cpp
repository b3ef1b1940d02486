// Deflate: repeated strings by hash chains, then the fixed codes.
#include "support/text/Deflate.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

namespace kiln {

static constexpr std::size_t kWindow = 32768, kLeast = 3, kMost = 258;
/// Earlier places that are tried for a string.
static constexpr int kTries = 24;

namespace {

class BitWriter {
public:
  /// The lowest bit first.
  void put(std::uint32_t bits, int count) {
    held_ |= static_cast<std::uint64_t>(bits) << count_;
    count_ += count;
    for (; count_ >= 8; count_ -= 8, held_ >>= 8)
      bytes_ += static_cast<char>(held_ & 0xff);
  }
  /// A Huffman code: the highest bit first.
  void putCode(std::uint32_t code, int count) {
    for (int i = count; i-- > 0;)
      put(code >> i & 1, 1);
  }
  std::string take() {
    if (count_ > 0)
      bytes_ += static_cast<char>(held_ & 0xff);
    return std::move(bytes_);
  }

private:
  std::string bytes_;
  std::uint64_t held_ = 0;
  int count_ = 0;
};

/// The place of a string that came before, and how far the two are alike.
struct Match {
  std::size_t length = 0, distance = 0;
};

/// Where each three bytes were last.
class Matcher {
public:
  explicit Matcher(std::string_view bytes)
      : bytes_(bytes), heads_(1 << kHashBits, kNone),
        previous_(bytes.size(), kNone) {}

  void note(std::size_t at) {
    if (at + kLeast > bytes_.size())
      return;
    std::uint32_t &head = heads_[hashAt(at)];
    previous_[at] = head;
    head = static_cast<std::uint32_t>(at);
  }
  Match find(std::size_t at) const {
    Match best;
    if (at + kLeast > bytes_.size())
      return best;
    std::size_t most = std::min(kMost, bytes_.size() - at);
    std::uint32_t from = heads_[hashAt(at)];
    for (int i = 0; i < kTries && from != kNone && at - from <= kWindow; ++i) {
      std::size_t length = 0;
      while (length < most && bytes_[from + length] == bytes_[at + length])
        ++length;
      if (length > best.length)
        best = {length, at - from};
      from = previous_[from];
    }
    return best;
  }

private:
  static constexpr int kHashBits = 16;
  static constexpr std::uint32_t kNone = ~std::uint32_t(0);

  std::uint32_t hashAt(std::size_t at) const {
    auto byte = [&](std::size_t i) {
      return static_cast<std::uint32_t>(
          static_cast<unsigned char>(bytes_[at + i]));
    };
    return (byte(0) | byte(1) << 8 | byte(2) << 16) * 0x9e3779b1u >>
           (32 - kHashBits);
  }

  std::string_view bytes_;
  std::vector<std::uint32_t> heads_, previous_;
};

/// A row of the tables of lengths and distances: its first value and how many
/// bits follow.
struct Row {
  std::uint32_t first, bits;
};

} // namespace

static constexpr Row kLengths[] = {
    {3, 0},  {4, 0},  {5, 0},  {6, 0},   {7, 0},   {8, 0},
    {9, 0},  {10, 0}, {11, 1}, {13, 1},  {15, 1},  {17, 1},
    {19, 2}, {23, 2}, {27, 2}, {31, 2},  {35, 3},  {43, 3},
    {51, 3}, {59, 3}, {67, 4}, {83, 4},  {99, 4},  {115, 4},
    {131, 5}, {163, 5}, {195, 5}, {227, 5}, {258, 0}};
static constexpr Row kDistances[] = {
    {1, 0},     {2, 0},     {3, 0},      {4, 0},      {5, 1},     {7, 1},
    {9, 2},     {13, 2},    {17, 3},     {25, 3},     {33, 4},    {49, 4},
    {65, 5},    {97, 5},    {129, 6},    {193, 6},    {257, 7},   {385, 7},
    {513, 8},   {769, 8},   {1025, 9},   {1537, 9},   {2049, 10}, {3073, 10},
    {4097, 11}, {6145, 11}, {8193, 12},  {12289, 12}, {16385, 13},
    {24577, 13}};

/// The row that a value is in.
template <std::size_t Count>
static std::uint32_t rowOf(const Row (&rows)[Count], std::size_t value) {
  const Row *next = std::upper_bound(
      std::begin(rows), std::end(rows), value,
      [](std::size_t wanted, const Row &row) { return wanted < row.first; });
  return static_cast<std::uint32_t>(next - rows - 1);
}

/// A literal, a length or the end, by the fixed code (RFC 1951, 3.2.6).
static void putSymbol(BitWriter &to, std::uint32_t symbol) {
  if (symbol < 144)
    to.putCode(0x30 + symbol, 8);
  else if (symbol < 256)
    to.putCode(0x190 + symbol - 144, 9);
  else if (symbol < 280)
    to.putCode(symbol - 256, 7);
  else
    to.putCode(0xc0 + symbol - 280, 8);
}

std::string deflated(std::string_view bytes) {
  BitWriter to;
  to.put(1, 1); // the last block
  to.put(1, 2); // with the fixed codes
  Matcher matcher(bytes);
  for (std::size_t at = 0; at < bytes.size();) {
    Match match = matcher.find(at);
    std::size_t length = 1;
    if (match.length >= kLeast) {
      length = match.length;
      std::uint32_t row = rowOf(kLengths, length);
      putSymbol(to, 257 + row);
      to.put(static_cast<std::uint32_t>(length) - kLengths[row].first,
             static_cast<int>(kLengths[row].bits));
      row = rowOf(kDistances, match.distance);
      to.putCode(row, 5);
      to.put(static_cast<std::uint32_t>(match.distance) -
                 kDistances[row].first,
             static_cast<int>(kDistances[row].bits));
    } else {
      putSymbol(to, static_cast<unsigned char>(bytes[at]));
    }
    for (std::size_t i = 0; i < length; ++i)
      matcher.note(at++);
  }
  putSymbol(to, 256);
  return to.take();
}

std::string base64(std::string_view bytes) {
  static constexpr char kDigits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    for (std::size_t j = 0; j < 3; ++j)
      group = group << 8 |
              (j < count ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    for (std::size_t j = 0; j < 4; ++j)
      text += j <= count ? kDigits[group >> (18 - 6 * j) & 63] : '=';
  }
  return text;
}

} // namespace kiln
