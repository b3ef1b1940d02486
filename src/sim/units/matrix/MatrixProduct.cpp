// MatrixProduct: shapes and the product itself.
#include "sim/units/matrix/MatrixProduct.h"
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

/// c[16][n] += a[16][k] * b[k][n], for the widest vectors of this processor.
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
          float left = a[(row + r) * k + inner];
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
          c[r * n + column] += a[r * k + inner] * b[inner * n + column];
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

/// Lanes that are added up together: a few rows of four columns.
template <int Lanes> struct Sums {
  using Vector __attribute__((vector_size(4 * Lanes))) = float;
  /// Vectors of rows that are kept in registers while k runs, each with the
  /// even columns of a block and with the odd ones.
  static constexpr int kRows = 4;
  /// Steps of k whose eight columns of a block fill a vector.
  static constexpr int kSteps = Lanes == 16 ? 2 : 1;
};

/// Four columns for every row of a vector: the even and the odd ones of steps.
template <int Lanes>
[[gnu::always_inline]] static inline void
loadColumns(const float *from,
            typename Sums<Lanes>::Vector (&to)[Sums<Lanes>::kSteps][2]) {
  typename Sums<Lanes>::Vector right;
  std::memcpy(&right, from, sizeof(right));
  if constexpr (Lanes == 16) {
    to[0][0] = __builtin_shufflevector(right, right, 0, 1, 2, 3, 0, 1, 2, 3, 0,
                                       1, 2, 3, 0, 1, 2, 3);
    to[0][1] = __builtin_shufflevector(right, right, 4, 5, 6, 7, 4, 5, 6, 7, 4,
                                       5, 6, 7, 4, 5, 6, 7);
    to[1][0] = __builtin_shufflevector(right, right, 8, 9, 10, 11, 8, 9, 10, 11,
                                       8, 9, 10, 11, 8, 9, 10, 11);
    to[1][1] = __builtin_shufflevector(right, right, 12, 13, 14, 15, 12, 13, 14,
                                       15, 12, 13, 14, 15, 12, 13, 14, 15);
  } else if constexpr (Lanes == 8) {
    to[0][0] = __builtin_shufflevector(right, right, 0, 1, 2, 3, 0, 1, 2, 3);
    to[0][1] = __builtin_shufflevector(right, right, 4, 5, 6, 7, 4, 5, 6, 7);
  } else {
    to[0][0] = right;
    std::memcpy(&to[0][1], from + 4, sizeof(right));
  }
}

/// Sums of `Blocks` blocks of eight columns, from row `first` on. `a` has each
/// row of A four times. A lane's element i is row lane / 4 (+ 8 for i & 2),
/// column 8 * (i / 4) + 2 * (lane % 4) + (i & 1).
template <int Lanes, int Blocks>
[[gnu::always_inline]] static inline void
addBlocks(int k, int first, const float *__restrict a,
          const float *__restrict b, std::uint32_t *const *registers,
          bool isAdded) {
  using S = Sums<Lanes>;
  typename S::Vector sum[Blocks][S::kRows][2];
  auto lanesOf = [&](int block, int i, int parity) {
    int row = first + i * Lanes / 4;
    return registers[block * 4 + row / 8 * 2 + parity] + row % 8 * 4;
  };
  for (int block = 0; block < Blocks; ++block)
    for (int i = 0; i < S::kRows; ++i)
      for (int parity = 0; parity < 2; ++parity)
        if (isAdded)
          std::memcpy(&sum[block][i][parity], lanesOf(block, i, parity),
                      sizeof(sum[0][0][0]));
        else
          sum[block][i][parity] = typename S::Vector{};
  for (int inner = 0; inner < k; inner += S::kSteps) {
    typename S::Vector left[S::kSteps][S::kRows];
    for (int step = 0; step < S::kSteps; ++step)
      std::memcpy(left[step], a + ((inner + step) * kWarpRows + first) * 4,
                  sizeof(left[step]));
    for (int block = 0; block < Blocks; ++block) {
      typename S::Vector columns[S::kSteps][2];
      loadColumns<Lanes>(b + (block * k + inner) * 8, columns);
      for (int step = 0; step < S::kSteps; ++step)
        for (int i = 0; i < S::kRows; ++i)
          for (int parity = 0; parity < 2; ++parity)
            sum[block][i][parity] += left[step][i] * columns[step][parity];
    }
  }
  for (int block = 0; block < Blocks; ++block)
    for (int i = 0; i < S::kRows; ++i)
      for (int parity = 0; parity < 2; ++parity)
        std::memcpy(lanesOf(block, i, parity), &sum[block][i][parity],
                    sizeof(sum[0][0][0]));
}

/// The product for float sums, with vectors of so many lanes.
template <int Lanes>
[[gnu::always_inline]] static inline void
multiplyLanes(int n, int k, const float *__restrict a,
              const float *__restrict b, std::uint32_t *const *registers,
              bool isAdded) {
  alignas(64) float fourfold[16 * 4 * kWarpRows];
  for (int i = 0; i < k * kWarpRows; ++i)
    for (int j = 0; j < 4; ++j)
      fourfold[4 * i + j] = a[i];
  // The widest vectors come with twice as many registers.
  constexpr int kBlocks = Lanes == 16 ? 2 : 1;
  int block = 0;
  for (; block + kBlocks <= n / 8; block += kBlocks)
    for (int row = 0; row < kWarpRows; row += Lanes)
      addBlocks<Lanes, kBlocks>(k, row, fourfold, b + block * k * 8,
                                registers + block * 4, isAdded);
  for (; block < n / 8; ++block)
    for (int row = 0; row < kWarpRows; row += Lanes)
      addBlocks<Lanes, 1>(k, row, fourfold, b + block * k * 8,
                          registers + block * 4, isAdded);
}

// One body for each width: chosen at load time, as with target_clones.
#if KILN_HAS_VECTOR_CHOICE
__attribute__((target("default")))
#endif
static void multiplyInRegisters(int n, int k, const float *a, const float *b,
                                std::uint32_t *const *registers, bool isAdded) {
  multiplyLanes<4>(n, k, a, b, registers, isAdded);
}
#if KILN_HAS_VECTOR_CHOICE
__attribute__((target("arch=x86-64-v3"))) static void
multiplyInRegisters(int n, int k, const float *a, const float *b,
                    std::uint32_t *const *registers, bool isAdded) {
  multiplyLanes<8>(n, k, a, b, registers, isAdded);
}
__attribute__((target("arch=x86-64-v4"))) static void
multiplyInRegisters(int n, int k, const float *a, const float *b,
                    std::uint32_t *const *registers, bool isAdded) {
  multiplyLanes<16>(n, k, a, b, registers, isAdded);
}
#endif

/// The power of two of an eight-bit float; a subnormal one has that of the
/// smallest normal number, `least`, and 0 has none.
static float powerOf(float value, float least) {
  float power =
      std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) & 0x7f800000u);
  return value == 0 ? 0 : std::max(power, least);
}

/// The smallest normal number of an eight-bit float.
static float leastNormal(OperandType type) {
  return type == OperandType::e4m3 ? 0x1p-6f : 0x1p-14f;
}

/// Cut off toward zero. An infinity or a NaN becomes a number that nobody uses,
/// by comparisons that are one vector instruction each.
static std::int32_t toInteger(float value) {
  value = value < 0x1p30f ? value : 0x1p30f;
  return static_cast<std::int32_t>(value > -0x1p30f ? value : -0x1p30f);
}

/// The same as the tensor core adds products of eight-bit floats: all addends
/// are cut off to 13 bits behind the point of the largest of them, whose power
/// is the sum of its factors' exponents, and an f32 to 14 bits in all, where an
/// f16 is rounded. Bit for bit what an H200 does.
KILN_WIDEST_VECTORS static void multiplyEightBitTile(const ProductShape &shape,
                                                     const float *__restrict a,
                                                     const float *__restrict b,
                                                     float *__restrict c) {
  constexpr float kCut = 0x1p13f;
  // 13 of 23 fraction bits.
  std::uint32_t keptBits = shape.typeD == AccumulatorType::f32 ? ~0x3ffu : ~0u;
  int n = shape.n, k = shape.k;
  float leastA = leastNormal(shape.typeA), leastB = leastNormal(shape.typeB);
  std::vector<float> powers(std::size_t(k) * n);
  for (std::size_t i = 0; i < powers.size(); ++i)
    powers[i] = powerOf(b[i], leastB);
  std::array<float, 256> largest, plain;
  // Unsigned, for where infinities and NaNs are cut, whose sums nobody uses.
  std::array<std::uint32_t, 256> sums;
  for (int row = 0; row < kWarpRows; ++row) {
    float *sum = c + row * n;
    for (int column = 0; column < n; ++column) {
      plain[column] = sum[column];
      largest[column] = powerOf(sum[column], 0);
    }
    for (int inner = 0; inner < k; ++inner) {
      float factor = a[row * k + inner], power = powerOf(factor, leastA);
      for (int column = 0; column < n; ++column) {
        plain[column] += factor * b[inner * n + column];
        float size = power * powers[inner * n + column];
        largest[column] = size > largest[column] ? size : largest[column];
      }
    }
    for (int column = 0; column < n; ++column) {
      // Nothing to cut off where the largest is tiny.
      float power = largest[column];
      largest[column] = kCut / (power > 0x1p-60f ? power : 0x1p-60f);
      sums[column] = toInteger(sum[column] * largest[column]);
    }
    for (int inner = 0; inner < k; ++inner) {
      float factor = a[row * k + inner];
      for (int column = 0; column < n; ++column)
        sums[column] +=
            toInteger(factor * b[inner * n + column] * largest[column]);
    }
    for (int column = 0; column < n; ++column) {
      float kept =
          std::bit_cast<float>(std::bit_cast<std::uint32_t>(static_cast<float>(
                                   static_cast<std::int32_t>(sums[column]))) &
                               keptBits);
      sum[column] = std::fabs(plain[column]) <= 0x1p126f
                        ? kept / largest[column]
                        : plain[column];
    }
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

/// The same for accumulators of 32 bits, eight columns of a row at a time.
template <typename Move>
static void forEachFloat(int n, std::uint32_t *const *registers, float *tile,
                         Move &&move) {
  for (int column = 0; column < n; column += 8)
    for (int half = 0; half < 2; ++half) {
      std::uint32_t *even = registers[column / 2 + 2 * half];
      std::uint32_t *odd = registers[column / 2 + 2 * half + 1];
      for (int row = 0; row < 8; ++row) {
        float *eight = tile + (row + 8 * half) * n + column;
        for (int pair = 0; pair < 4; ++pair) {
          move(eight[2 * pair], even[4 * row + pair]);
          move(eight[2 * pair + 1], odd[4 * row + pair]);
        }
      }
    }
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

void multiplyWarp(const ProductShape &shape, const float *a, const float *b,
                  std::uint32_t *const *registers, bool isAdded) {
  if (shape.hasFloatSums())
    return multiplyInRegisters(shape.n, shape.k, a, b, registers, isAdded);
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
    forEachFloat(n, registers, tile.data(), [](float &to, std::uint32_t from) {
      to = std::bit_cast<float>(from);
    });
  if (bytesOf(shape.typeA) == 1)
    multiplyEightBitTile(shape, a, b, tile.data());
  else
    multiplyTile(n, shape.k, a, b, tile.data());
  if (!isHalf)
    return forEachFloat(n, registers, tile.data(),
                        [](float from, std::uint32_t &to) {
                          to = std::bit_cast<std::uint32_t>(from);
                        });
  forEachAccumulator(n, [&](int i, int lane, int at) {
    std::uint32_t &pair = registers[i / 2][lane];
    std::uint32_t half = floatToHalf(tile[at]);
    pair = i & 1 ? (pair & 0xffff) | half << 16 : half;
  });
}

} // namespace kiln::sim
