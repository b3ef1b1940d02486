// MatrixOperand: operands of wgmma from shared memory or registers, as floats
// in the order in which the product wants them.
#include "sim/program/Lanes.h"
#include "sim/units/matrix/MatrixProduct.h"
#include "support/FloatFormat.h"
#include "support/Half.h"
#include "support/HostProcessor.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

namespace kiln::sim {

OperandView viewOf(std::uint64_t descriptor, const ProductShape &shape,
                   bool isA) {
  static constexpr int kSwizzles[] = {0, 128, 64, 32};
  OperandView view;
  view.start = static_cast<std::uint32_t>(descriptor & 0x3fff) << 4;
  view.leading = static_cast<std::uint32_t>(descriptor >> 16 & 0x3fff) << 4;
  view.stride = static_cast<std::uint32_t>(descriptor >> 32 & 0x3fff) << 4;
  view.swizzleBytes = kSwizzles[descriptor >> 62];
  view.baseOffset = static_cast<std::uint32_t>(descriptor >> 49 & 7);
  view.isA = isA;
  view.isKMajor = !(isA ? shape.isATransposed : shape.isBTransposed);
  view.elementBytes = bytesOf(isA ? shape.typeA : shape.typeB);
  view.rows = isA ? 64 : shape.n;
  view.k = isA && shape.isSparse ? shape.k / 2 : shape.k;
  return view;
}

std::uint32_t OperandView::lastByte() const {
  std::uint32_t last = 0;
  // Offsets grow with the columns; with the rows they need not, where the next
  // group of them lies over this one.
  for (int row = 0; row < rows; ++row)
    last = std::max(last, address(row, k - 1));
  // The swizzle moves bytes within their row of the pattern only.
  std::uint32_t pattern = std::max(swizzleBytes, 16);
  return (last / pattern + 1) * pattern;
}

/// Every eight-bit float, converted once.
static const std::array<float, 256> &eightTable(OperandType type) {
  static const auto make = [](const FloatFormat &format) {
    std::array<float, 256> values;
    for (std::uint32_t i = 0; i < 256; ++i)
      values[i] = static_cast<float>(decode(format, i));
    return values;
  };
  static const auto e4m3 = make(kFormatE4m3), e5m2 = make(kFormatE5m2);
  return type == OperandType::e4m3 ? e4m3 : e5m2;
}

/// The element at `bytes` as float.
static float toFloat(const std::uint8_t *bytes, OperandType type) {
  switch (type) {
  case OperandType::f16: {
    std::uint16_t bits;
    std::memcpy(&bits, bytes, 2);
    return halfToFloat(bits);
  }
  case OperandType::bf16: {
    std::uint16_t bits;
    std::memcpy(&bits, bytes, 2);
    return bfloatToFloat(bits);
  }
  case OperandType::tf32: {
    std::uint32_t bits;
    std::memcpy(&bits, bytes, 4);
    return std::bit_cast<float>(bits & 0xffffe000u);
  }
  case OperandType::s8:
    return static_cast<std::int8_t>(*bytes);
  case OperandType::u8:
    return *bytes;
  default:
    return eightTable(type)[*bytes];
  }
}

float elementOf(const std::uint8_t *bytes, int i, OperandType type) {
  auto bitsAt = [&](int first, int count) {
    std::uint32_t word = bytes[first / 8];
    if (first % 8 + count > 8)
      word |= std::uint32_t(bytes[first / 8 + 1]) << 8;
    return word >> first % 8 & ((1u << count) - 1);
  };
  switch (type) {
  case OperandType::e2m3:
    return static_cast<float>(decode(kFormatE2m3, bitsAt(6 * i, 6)));
  case OperandType::e3m2:
    return static_cast<float>(decode(kFormatE3m2, bitsAt(6 * i, 6)));
  case OperandType::e2m1:
    return static_cast<float>(decode(kFormatE2m1, bitsAt(4 * i, 4)));
  default:
    return toFloat(bytes + i * bytesOf(type), type);
  }
}

float scaleOf(std::uint8_t bits, bool isPower) {
  if (!isPower)
    return eightTable(OperandType::e4m3)[bits & 0x7f];
  return bits == 0xff ? NAN : std::ldexp(1.0f, bits - 127);
}

/// Where element (row, column) of an operand stands; `count` rows are there.
static int placeOf(int count, int row, int column) {
  return column * count + row;
}

/// Eight words of 16 bits.
using Eight __attribute__((vector_size(16))) = std::uint16_t;

/// Rows become columns.
[[gnu::always_inline]] static inline void transpose(Eight (&rows)[8]) {
  // Interleaving the two halves of the rows turns the bits of a word's place
  // by one; three turns exchange its row with its column.
  for (int turn = 0; turn < 3; ++turn) {
    Eight next[8];
    for (int i = 0; i < 4; ++i) {
      next[2 * i] = __builtin_shufflevector(rows[i], rows[i + 4], 0, 8, 1, 9, 2,
                                            10, 3, 11);
      next[2 * i + 1] = __builtin_shufflevector(rows[i], rows[i + 4], 4, 12, 5,
                                                13, 6, 14, 7, 15);
    }
    std::copy_n(next, 8, rows);
  }
}

/// Words as floats, times 1 or -1.
KILN_WIDEST_VECTORS static void
wordsToFloats(const std::uint16_t *__restrict from, int count, bool isHalf,
              float scale, float *__restrict to) {
  if (isHalf)
    for (int i = 0; i < count; ++i)
      to[i] = scale * halfToFloat(from[i]);
  else
    for (int i = 0; i < count; ++i)
      to[i] = scale * bfloatToFloat(from[i]);
}

/// Elements of 16 bits as [k][row], eight rows and eight columns at a time, or
/// eight rows of a column where those lie together.
static void loadWords(const std::uint8_t *shared, const OperandView &view,
                      int first, int count, std::uint16_t *words) {
  auto load = [&](int row, int column) {
    Eight words;
    std::memcpy(&words,
                shared + view.address(first + row, column) -
                    kFirstSharedAddress,
                sizeof(words));
    return words;
  };
  for (int row = 0; row < count; row += 8)
    for (int column = 0; column < view.k; column += 8) {
      Eight block[8];
      for (int i = 0; i < 8; ++i)
        block[i] =
            view.isKMajor ? load(row + i, column) : load(row, column + i);
      if (view.isKMajor)
        transpose(block);
      for (int i = 0; i < 8; ++i)
        std::memcpy(words + placeOf(count, row, column + i), &block[i],
                    sizeof(block[i]));
    }
}

bool loadOperand(const std::vector<std::uint8_t> &shared,
                 const ValidBits &valid, const OperandView &view,
                 const ProductShape &shape, int first, int count, float *out) {
  bool isA = view.isA;
  OperandType type = isA ? shape.typeA : shape.typeB;
  float scale = static_cast<float>(isA ? shape.scaleA : shape.scaleB);
  bool isWritten = true;
  bool isByWords = shape.hasHalves();
  if (isByWords) {
    std::array<std::uint16_t, 256 * 16> words;
    loadWords(shared.data(), view, first, count, words.data());
    wordsToFloats(words.data(), count * view.k, type == OperandType::f16, scale,
                  out);
  }
  // Sixteen bytes lie together whatever the swizzle: they are one chunk.
  int perChunk = 16 / view.elementBytes;
  int rowStep = view.isKMajor ? 1 : perChunk;
  int columnStep = view.isKMajor ? perChunk : 1;
  for (int row = 0; row < count; row += rowStep)
    for (int column = 0; column < view.k; column += columnStep) {
      std::uint32_t at =
          view.address(first + row, column) - kFirstSharedAddress;
      isWritten &= valid.all(at, 16);
      if (isByWords)
        continue;
      int inside = view.isKMajor ? view.k - column : count - row;
      for (int i = 0; i < std::min(perChunk, inside); ++i) {
        int place = view.isKMajor ? placeOf(count, row, column + i)
                                  : placeOf(count, row + i, column);
        out[place] =
            scale * toFloat(shared.data() + at + i * view.elementBytes, type);
      }
    }
  return isWritten;
}

void loadColumns(const std::vector<std::uint8_t> &shared,
                 const ValidBits &valid, const OperandView &view,
                 OperandType type, float sign, float *out, int pitch,
                 std::vector<bool> &unwritten) {
  bool isByWords = type <= OperandType::bf16;
  if (isByWords) {
    std::array<std::uint16_t, 256 * 16> words;
    loadWords(shared.data(), view, 0, view.rows, words.data());
    for (int column = 0; column < view.k; ++column)
      wordsToFloats(words.data() + column * view.rows, view.rows,
                    type == OperandType::f16, sign, out + column * pitch);
  }
  int perByte = view.isPacked ? 2 : 1;
  int perChunk = 16 / view.elementBytes;
  int rowStep = view.isKMajor ? 1 : perChunk;
  int columnStep = view.isKMajor ? perChunk : 1;
  for (int row = 0; row < view.rows; row += rowStep)
    for (int column = 0; column < view.k; column += columnStep) {
      std::uint32_t at = view.address(row, column) - kFirstSharedAddress;
      if (!valid.all(at, 16))
        for (int i = row; i < std::min(row + rowStep, view.rows); ++i)
          unwritten[static_cast<std::size_t>(i)] = true;
      if (isByWords)
        continue;
      for (int i = 0; i < perChunk * perByte; ++i) {
        int element = view.isKMajor ? column * perByte + i : column;
        int its = view.isKMajor ? row : row + i;
        if (its < view.rows && element < view.k * perByte)
          out[element * pitch + its] =
              sign * elementOf(shared.data() + at, i, type);
      }
    }
}

void loadFragment(const std::uint32_t *const *registers,
                  const ProductShape &shape, float *out) {
  int elementBytes = bytesOf(shape.typeA), perWord = 4 / elementBytes;
  // Register i of a lane: four bytes of row lane / 4 (+ 8 for i & 1), bytes
  // 4 * (lane % 4) + 16 * (i / 2) of the row's 32.
  for (int i = 0; i < kFragmentRegisters; ++i)
    for (int lane = 0; lane < kLanes; ++lane) {
      std::uint8_t bytes[4];
      std::memcpy(bytes, &registers[i][lane], 4);
      int row = lane / 4 + 8 * (i & 1);
      int column = (lane % 4 + 4 * (i >> 1)) * perWord;
      for (int j = 0; j < perWord; ++j)
        out[placeOf(kWarpRows, row, column + j)] =
            static_cast<float>(shape.scaleA) *
            toFloat(bytes + j * elementBytes, shape.typeA);
    }
}

void loadColumns(const std::vector<std::uint8_t> &shared,
                 const OperandView &view, const ProductShape &shape,
                 float *out) {
  for (int row = 0; row < shape.n; ++row)
    for (int k = 0; k < shape.k; ++k)
      out[placeOf(shape.n, row, k)] =
          static_cast<float>(shape.scaleB) *
          toFloat(shared.data() + view.address(row, k) - kFirstSharedAddress,
                  shape.typeB);
}

/// The four bits that say which elements of a group of a row are there: two of
/// four, or one of two of 32 bits.
static unsigned groupBits(const ProductShape &shape,
                          const std::uint32_t *metadata, int selector, int row,
                          int k) {
  int group = k / (shape.typeA == OperandType::tf32 ? 2 : 4);
  // Eight bits: four lanes have a row and the eighth below it, half of K each.
  if (bytesOf(shape.typeA) == 1) {
    int lane = row % 8 * 4 + 2 * (group / 8) + row / 8;
    return metadata[lane] >> (4 * (group % 8)) & 15;
  }
  // Else two of them, those rows in the halves of a word.
  int lane = row % 8 * 4 + 2 * selector + group / 4;
  return metadata[lane] >> (16 * (row / 8) + 4 * (group % 4)) & 15;
}

void expandRows(const ProductShape &shape, const float *there,
                const std::uint32_t *metadata, int selector, float *out,
                std::uint8_t *isAbsent) {
  std::fill_n(out, kWarpRows * shape.k, 0.0f);
  std::fill_n(isAbsent, kWarpRows * shape.k, std::uint8_t(1));
  bool isOneOfTwo = shape.typeA == OperandType::tf32;
  for (int row = 0; row < kWarpRows; ++row)
    for (int i = 0; i < shape.k / 2; ++i) {
      unsigned bits = groupBits(shape, metadata, selector, row, 2 * i);
      int to = isOneOfTwo ? 2 * i + static_cast<int>(bits >> 1 & 1)
                          : i / 2 * 4 + static_cast<int>(bits >> i % 2 * 2 & 3);
      out[placeOf(kWarpRows, row, to)] = there[placeOf(kWarpRows, row, i)];
      isAbsent[row * shape.k + to] = 0;
    }
}

} // namespace kiln::sim
