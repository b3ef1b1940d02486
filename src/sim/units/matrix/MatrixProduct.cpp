// MatrixProduct: shapes and the product itself.
#include "sim/units/matrix/MatrixProduct.h"
#include "sim/units/matrix/AlignedSum.h"
#include "isa/MatrixForms.h"
#include "sim/program/Lanes.h"
#include "support/Half.h"
#include "support/HostProcessor.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <fmt/format.h>

namespace kiln::sim {

namespace {
struct TypeWord {
  const char *ptx;
  OperandType type;
  int bytes;
};
} // namespace

static constexpr TypeWord kTypes[] = {
    {"f16", OperandType::f16, 2},   {"bf16", OperandType::bf16, 2},
    {"tf32", OperandType::tf32, 4}, {"e4m3", OperandType::e4m3, 1},
    {"e5m2", OperandType::e5m2, 1}, {"e2m3", OperandType::e2m3, 1},
    {"e3m2", OperandType::e3m2, 1}, {"e2m1", OperandType::e2m1, 1},
    {"s8", OperandType::s8, 1},     {"u8", OperandType::u8, 1}};

std::optional<OperandType> operandType(std::string_view name) {
  for (const TypeWord &type : kTypes)
    if (name == type.ptx)
      return type.type;
  return std::nullopt;
}

int bytesOf(OperandType type) { return kTypes[static_cast<int>(type)].bytes; }

/// "m64n128k16": N and K; nothing where it is no shape of wgmma.
static std::optional<isa::MatrixSizes> sizesOf(const std::string &word) {
  std::optional<isa::MatrixSizes> sizes = isa::readMatrixSizes(word);
  return sizes && sizes->m == 64 ? sizes : std::nullopt;
}

bool parseShape(std::vector<std::string> modifiers, ProductShape &shape,
                std::string &why) {
  // The text has .satfinite behind the shape; ptxas takes it at the end too.
  if (!modifiers.empty() && modifiers.back() == "satfinite") {
    modifiers.pop_back();
    shape.isSaturated = true;
  }
  std::size_t at = 0;
  std::optional<isa::MatrixSizes> sizes;
  for (; at < modifiers.size() && !sizes; at += sizes ? 0 : 1)
    sizes = sizesOf(modifiers[at]);
  if (at + 1 < modifiers.size() && modifiers[at + 1] == "satfinite") {
    shape.isSaturated = true;
    ++at;
  }
  if (!sizes || at + 4 != modifiers.size()) {
    why = "its shape and types are not of the form .m64nNkK.d.a.b";
    return false;
  }
  shape.n = sizes->n;
  shape.k = sizes->k;
  const std::string &d = modifiers[at + 1];
  if (d != "f32" && d != "f16" && d != "s32") {
    why = "accumulators of type " + d;
    return false;
  }
  const std::string &nameA = modifiers[at + 2], &nameB = modifiers[at + 3];
  std::optional<OperandType> a = operandType(nameA), b = operandType(nameB);
  if (!a || !b) {
    why = "operands of type " + (a ? nameB : nameA);
    return false;
  }
  const isa::MatrixForm *form = isa::findMatrixForm(
      shape.isSparse ? "wgmma.sp" : "wgmma", "", nameA, nameB);
  if (!form || !form->hasSum(d)) {
    why = "these types do not go together";
    return false;
  }
  shape.typeA = *a;
  shape.typeB = *b;
  shape.typeD = d == "f32"   ? AccumulatorType::f32
                : d == "f16" ? AccumulatorType::f16
                             : AccumulatorType::s32;
  if (shape.isSaturated && !shape.hasIntegers()) {
    why = "these types do not go together";
    return false;
  }
  if (!isa::isWgmmaWidth(shape.n, shape.hasIntegers()) ||
      !form->hasShape(fmt::format("m64k{}", shape.k))) {
    why = "its shape is none of the hardware's";
    return false;
  }
  return true;
}

/// Sixteen floats; narrower processors use several registers for them.
using Wide __attribute__((vector_size(64))) = float;
/// Rows of a tile that are kept in registers while k runs, and their columns.
static constexpr int kRows = 4, kColumns = 32;

/// c[16][n] += a[k][16] * b[k][n], for the widest vectors of this processor.
KILN_WIDEST_VECTORS static void multiplyTile(int n, int k,
                                             const float *__restrict a,
                                             const float *__restrict b,
                                             float *__restrict c) {
  int wide = n / kColumns * kColumns;
  for (int row = 0; row < kWarpRows; row += kRows) {
    for (int column = 0; column < wide; column += kColumns) {
      Wide sum[kRows][2];
      for (int r = 0; r < kRows; ++r)
        std::memcpy(sum[r], c + (row + r) * n + column, sizeof(sum[r]));
      for (int inner = 0; inner < k; ++inner) {
        Wide right[2];
        std::memcpy(right, b + inner * n + column, sizeof(right));
        for (int r = 0; r < kRows; ++r) {
          float left = a[inner * kWarpRows + row + r];
          sum[r][0] += left * right[0];
          sum[r][1] += left * right[1];
        }
      }
      for (int r = 0; r < kRows; ++r)
        std::memcpy(c + (row + r) * n + column, sum[r], sizeof(sum[r]));
    }
    for (int r = row; r < row + kRows && wide < n; ++r)
      for (int inner = 0; inner < k; ++inner)
        for (int column = wide; column < n; ++column)
          c[r * n + column] +=
              a[inner * kWarpRows + r] * b[inner * n + column];
  }
}

KILN_WIDEST_VECTORS void addOuterProducts(int columns, int lanes, int k,
                                          const float *__restrict a, int pitchA,
                                          const float *__restrict b, int pitchB,
                                          std::uint32_t *__restrict sums,
                                          int pitch, bool isAdded) {
  for (int column = 0; column < columns; column += kRows)
    for (int lane = 0; lane < lanes; lane += kColumns) {
      Wide sum[kRows][2] = {};
      if (isAdded)
        for (int i = 0; i < kRows; ++i)
          std::memcpy(sum[i], sums + (column + i) * pitch + lane,
                      sizeof(sum[i]));
      for (int inner = 0; inner < k; ++inner) {
        Wide right[2];
        std::memcpy(right, a + inner * pitchA + lane, sizeof(right));
        for (int i = 0; i < kRows; ++i) {
          float left = b[inner * pitchB + column + i];
          sum[i][0] += left * right[0];
          sum[i][1] += left * right[1];
        }
      }
      for (int i = 0; i < kRows; ++i)
        std::memcpy(sums + (column + i) * pitch + lane, sum[i], sizeof(sum[i]));
    }
}

/// The accumulator of one warp as a matrix, and back. Element i of a lane: row
/// lane / 4 (+ 8 for i & 2), column 8 * (i / 4) + 2 * (lane % 4) + (i & 1).
template <typename Element>
static void forEachAccumulator(int n, Element &&element) {
  for (int i = 0; i < n / 2; ++i)
    for (int lane = 0; lane < kLanes; ++lane)
      element(i, lane,
              (lane / 4 + 8 * (i >> 1 & 1)) * n + 8 * (i >> 2) +
                  2 * (lane % 4) + (i & 1));
}

/// Four words.
using Four __attribute__((vector_size(16))) = std::uint32_t;

/// The same for accumulators of 32 bits, eight columns of a row at a time:
/// `move(row of the tile, even columns, odd columns)`.
template <typename Move>
static void forEachEight(int n, std::uint32_t *const *registers, float *tile,
                         Move &&move) {
  for (int column = 0; column < n; column += 8)
    for (int half = 0; half < 2; ++half) {
      std::uint32_t *even = registers[column / 2 + 2 * half];
      std::uint32_t *odd = registers[column / 2 + 2 * half + 1];
      for (int row = 0; row < 8; ++row)
        move(tile + (row + 8 * half) * n + column, even + 4 * row,
             odd + 4 * row);
    }
}

static void toTile(float *eight, const std::uint32_t *even,
                   const std::uint32_t *odd) {
  Four left, right;
  std::memcpy(&left, even, sizeof(left));
  std::memcpy(&right, odd, sizeof(right));
  Four low = __builtin_shufflevector(left, right, 0, 4, 1, 5);
  Four high = __builtin_shufflevector(left, right, 2, 6, 3, 7);
  std::memcpy(eight, &low, sizeof(low));
  std::memcpy(eight + 4, &high, sizeof(high));
}

static void fromTile(const float *eight, std::uint32_t *even,
                     std::uint32_t *odd) {
  Four low, high;
  std::memcpy(&low, eight, sizeof(low));
  std::memcpy(&high, eight + 4, sizeof(high));
  Four left = __builtin_shufflevector(low, high, 0, 2, 4, 6);
  Four right = __builtin_shufflevector(low, high, 1, 3, 5, 7);
  std::memcpy(even, &left, sizeof(left));
  std::memcpy(odd, &right, sizeof(right));
}

/// Sums of one instruction stay below 2^24: they are exact as floats.
static void addIntegers(const ProductShape &shape, const float *tile,
                        std::uint32_t *const *registers, bool isAdded) {
  forEachAccumulator(shape.n, [&](int i, int lane, int at) {
    std::uint32_t &to = registers[i][lane];
    std::int64_t sum = isAdded ? static_cast<std::int32_t>(to) : 0;
    sum += static_cast<std::int64_t>(tile[at]);
    if (shape.isSaturated)
      sum = std::clamp<std::int64_t>(sum, INT32_MIN, INT32_MAX);
    to = static_cast<std::uint32_t>(sum);
  });
}

void multiplyWarp(const ProductShape &shape, bool isFast, const float *a,
                  const float *b, std::uint32_t *const *registers, bool isAdded,
                  const std::uint8_t *isAbsent) {
  std::array<float, kWarpRows * 256> tile;
  int n = shape.n;
  if (!isAdded || shape.hasIntegers())
    std::fill_n(tile.begin(), kWarpRows * n, 0.0f);
  if (shape.hasIntegers()) {
    multiplyTile(n, shape.k, a, b, tile.data());
    return addIntegers(shape, tile.data(), registers, isAdded);
  }
  bool isHalf = shape.typeD == AccumulatorType::f16;
  if (isAdded && isHalf)
    forEachAccumulator(n, [&](int i, int lane, int at) {
      tile[at] = halfToFloat(
          static_cast<std::uint16_t>(registers[i / 2][lane] >> (16 * (i & 1))));
    });
  else if (isAdded)
    forEachEight(n, registers, tile.data(), toTile);
  addAligned(groupSumRule(shape, isFast && !isAbsent),
             {.lines = kWarpRows,
              .columns = n,
              .k = shape.k,
              .x = a,
              .lineStep = 1,
              .step = kWarpRows,
              .y = b,
              .pitch = n,
              .isAbsent = isAbsent},
             tile.data(), n);
  if (!isHalf)
    return forEachEight(n, registers, tile.data(), fromTile);
  forEachAccumulator(n, [&](int i, int lane, int at) {
    std::uint32_t &pair = registers[i / 2][lane];
    std::uint32_t half = roundToHalf(tile[at]);
    pair = i & 1 ? (pair & 0xffff) | half << 16 : half;
  });
}

} // namespace kiln::sim
