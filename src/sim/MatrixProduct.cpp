// MatrixProduct: descriptors, conversions and the product.
#include "sim/MatrixProduct.h"
#include "sim/Lanes.h"
#include "sim/Swizzled.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

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
    {"e5m2", OperandType::e5m2, 1}, {"s8", OperandType::s8, 1},
    {"u8", OperandType::u8, 1}};

static const TypeWord *findType(const std::string &word) {
  for (const TypeWord &type : kTypes)
    if (word == type.ptx)
      return &type;
  return nullptr;
}

static int bytesOf(OperandType type) {
  return kTypes[static_cast<int>(type)].bytes;
}

bool parseShape(const std::vector<std::string> &modifiers, ProductShape &shape,
                std::string &why) {
  std::size_t at = 0;
  for (; at < modifiers.size(); ++at)
    if (std::sscanf(modifiers[at].c_str(), "m64n%dk%d", &shape.n, &shape.k) ==
        2)
      break;
  if (at + 3 >= modifiers.size()) {
    why = "its shape and types are not of the form .m64nNkK.d.a.b";
    return false;
  }
  shape.isInteger = modifiers[at + 1] == "s32";
  if (modifiers[at + 1] != "f32" && !shape.isInteger) {
    why = "accumulators of type " + modifiers[at + 1];
    return false;
  }
  if (modifiers.back() == "satfinite") {
    why = "saturating accumulation";
    return false;
  }
  const TypeWord *a = findType(modifiers[at + 2]);
  const TypeWord *b = findType(modifiers[at + 3]);
  if (!a || !b) {
    why = "operands of type " + modifiers[at + (a ? 3 : 2)];
    return false;
  }
  if (shape.n < 8 || shape.n > 256 || shape.n % 8 || shape.k * a->bytes != 32) {
    why = "its shape is none of the hardware's";
    return false;
  }
  shape.typeA = a->type;
  shape.typeB = b->type;
  return true;
}

OperandView viewOf(std::uint64_t descriptor, const ProductShape &shape,
                   bool isA) {
  static constexpr int kSwizzles[] = {0, 128, 64, 32};
  OperandView view;
  view.start = static_cast<std::uint32_t>(descriptor & 0x3fff) << 4;
  view.leading = static_cast<std::uint32_t>(descriptor >> 16 & 0x3fff) << 4;
  view.stride = static_cast<std::uint32_t>(descriptor >> 32 & 0x3fff) << 4;
  view.swizzleBytes = kSwizzles[descriptor >> 62];
  view.isKMajor = !(isA ? shape.isATransposed : shape.isBTransposed);
  view.elementBytes = bytesOf(isA ? shape.typeA : shape.typeB);
  view.rows = isA ? 64 : shape.n;
  view.k = shape.k;
  return view;
}

std::uint32_t OperandView::address(int row, int column) const {
  std::uint32_t offset;
  if (isKMajor) {
    std::uint32_t byte = static_cast<std::uint32_t>(column * elementBytes);
    if (swizzleBytes == 0)
      offset =
          row % 8 * 16 + row / 8 * stride + byte % 16 + byte / 16 * leading;
    else
      offset = row % 8 * swizzleBytes + row / 8 * stride + byte;
  } else {
    std::uint32_t perChunk = 16 / elementBytes;
    if (swizzleBytes == 0) {
      offset = row % perChunk * elementBytes + row / perChunk * stride +
               column % 8 * 16 + column / 8 * leading;
    } else {
      std::uint32_t perRow = swizzleBytes / elementBytes;
      offset = row % perRow * elementBytes + row / perRow * leading +
               column % 8 * swizzleBytes + column / 8 * stride;
    }
  }
  return swizzled(start + offset, static_cast<std::uint32_t>(swizzleBytes));
}

std::uint32_t OperandView::lastByte() const {
  std::uint32_t last = 0;
  for (int row : {0, rows - 1})
    for (int column : {0, k - 1})
      last = std::max(last, address(row, column));
  // The swizzle moves bytes within their row of the pattern only.
  std::uint32_t pattern = std::max(swizzleBytes, 16);
  return (last / pattern + 1) * pattern;
}

/// 16 bits of IEEE half as float.
static float fromHalf(std::uint16_t bits) {
  std::uint32_t sign = (bits & 0x8000u) << 16;
  std::uint32_t exponent = bits >> 10 & 31, fraction = bits & 0x3ff;
  if (exponent == 31)
    return std::bit_cast<float>(sign | 0x7f800000u | fraction << 13);
  if (exponent == 0) {
    float value = static_cast<float>(fraction) * 0x1p-24f;
    return sign ? -value : value;
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
}

/// Eight bits with `exponentBits` of exponent as float.
static float fromEight(std::uint8_t bits, int exponentBits) {
  int fractionBits = 7 - exponentBits, bias = (1 << (exponentBits - 1)) - 1;
  int exponent = bits >> fractionBits & ((1 << exponentBits) - 1);
  int fraction = bits & ((1 << fractionBits) - 1);
  float sign = bits & 0x80 ? -1.0f : 1.0f;
  bool isTop = exponent == (1 << exponentBits) - 1;
  if (exponentBits == 4 && isTop && fraction == 7)
    return NAN;
  if (exponentBits == 5 && isTop)
    return fraction ? NAN : sign * INFINITY;
  if (exponent == 0)
    return sign *
           std::ldexp(static_cast<float>(fraction), 1 - bias - fractionBits);
  return sign * std::ldexp(static_cast<float>((1 << fractionBits) + fraction),
                           exponent - bias - fractionBits);
}

/// Every half and every eight-bit float, converted once.
static const std::vector<float> &halfTable() {
  static const std::vector<float> table = [] {
    std::vector<float> values(65536);
    for (int i = 0; i < 65536; ++i)
      values[i] = fromHalf(static_cast<std::uint16_t>(i));
    return values;
  }();
  return table;
}

static const std::array<float, 256> &eightTable(OperandType type) {
  static const auto make = [](int exponentBits) {
    std::array<float, 256> values;
    for (int i = 0; i < 256; ++i)
      values[i] = fromEight(static_cast<std::uint8_t>(i), exponentBits);
    return values;
  };
  static const std::array<float, 256> e4m3 = make(4), e5m2 = make(5);
  return type == OperandType::e4m3 ? e4m3 : e5m2;
}

/// The element at `bytes` as float.
static float toFloat(const std::uint8_t *bytes, OperandType type) {
  switch (type) {
  case OperandType::f16: {
    std::uint16_t bits;
    std::memcpy(&bits, bytes, 2);
    return halfTable()[bits];
  }
  case OperandType::bf16: {
    std::uint16_t bits;
    std::memcpy(&bits, bytes, 2);
    return std::bit_cast<float>(std::uint32_t(bits) << 16);
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

bool loadOperand(const std::vector<std::uint8_t> &shared,
                 const ValidBits &valid, const OperandView &view,
                 const ProductShape &shape, int first, int count, float *out) {
  bool isA = view.rows == 64 && count == 16;
  OperandType type = isA ? shape.typeA : shape.typeB;
  float scale = static_cast<float>(isA ? shape.scaleA : shape.scaleB);
  bool isWritten = true;
  // Sixteen bytes lie together whatever the swizzle: they are one chunk.
  int perChunk = 16 / view.elementBytes;
  int rowStep = view.isKMajor ? 1 : perChunk;
  int columnStep = view.isKMajor ? perChunk : 1;
  for (int row = 0; row < count; row += rowStep)
    for (int column = 0; column < view.k; column += columnStep) {
      std::uint32_t at =
          view.address(first + row, column) - kFirstSharedAddress;
      isWritten &= valid.all(at, 16);
      for (int i = 0; i < perChunk; ++i) {
        int r = view.isKMajor ? row : row + i;
        int c = view.isKMajor ? column + i : column;
        if (r >= count || c >= view.k)
          continue;
        float value =
            scale * toFloat(shared.data() + at + i * view.elementBytes, type);
        out[isA ? r * view.k + c : c * count + r] = value;
      }
    }
  return isWritten;
}

/// c[16][n] += a[16][k] * b[k][n], for the widest vectors of this processor.
__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3",
                             "default"))) static void
multiplyTile(int n, int k, const float *__restrict a, const float *__restrict b,
             float *__restrict c) {
  for (int row = 0; row < 16; row += 4) {
    float *c0 = c + row * n, *c1 = c0 + n, *c2 = c1 + n, *c3 = c2 + n;
    for (int inner = 0; inner < k; ++inner) {
      float a0 = a[row * k + inner], a1 = a[(row + 1) * k + inner];
      float a2 = a[(row + 2) * k + inner], a3 = a[(row + 3) * k + inner];
      const float *bRow = b + inner * n;
      for (int column = 0; column < n; ++column) {
        float value = bRow[column];
        c0[column] += a0 * value;
        c1[column] += a1 * value;
        c2[column] += a2 * value;
        c3[column] += a3 * value;
      }
    }
  }
}

void multiplyWarp(const ProductShape &shape, const float *a, const float *b,
                  float *const *registers, bool isAdded) {
  int n = shape.n;
  std::array<float, 16 * 256> tile{};
  // Register i of a lane: row lane / 4 (+ 8 for i & 2), columns 8 * (i / 4) +
  // 2 * (lane % 4) + (i & 1).
  auto place = [&](int i, int lane) {
    return (lane / 4 + 8 * (i >> 1 & 1)) * n + 8 * (i >> 2) + 2 * (lane % 4) +
           (i & 1);
  };
  if (shape.isInteger) {
    // One instruction's sums stay below 2^24: they are exact as floats.
    multiplyTile(n, shape.k, a, b, tile.data());
    for (int i = 0; i < n / 2; ++i) {
      auto *lanes = reinterpret_cast<std::uint32_t *>(registers[i]);
      for (int lane = 0; lane < kLanes; ++lane)
        lanes[lane] = (isAdded ? lanes[lane] : 0) +
                      static_cast<std::uint32_t>(
                          static_cast<std::int32_t>(tile[place(i, lane)]));
    }
    return;
  }
  if (isAdded)
    for (int i = 0; i < n / 2; ++i)
      for (int lane = 0; lane < kLanes; ++lane)
        tile[place(i, lane)] = registers[i][lane];
  multiplyTile(n, shape.k, a, b, tile.data());
  for (int i = 0; i < n / 2; ++i)
    for (int lane = 0; lane < kLanes; ++lane)
      registers[i][lane] = tile[place(i, lane)];
}

} // namespace kiln::sim
