// MmaProduct: mma whose operands are spread, scaled, or smaller than a byte.
//
// All matrices are laid out with every column of A, and multiplied element by
// element: floats in double, rounded once, and bits and integers in 64 bits.
#include "sim/units/Execute.h"
#include "sim/units/mma/Mma.h"
#include "sim/units/mma/MmaSum.h"
#include "sim/units/matrix/MatrixNumber.h"
#include "support/Error.h"
#include "support/FloatFormat.h"

namespace kiln::sim {

namespace {
/// The scales of an operand: a word of a lane of each quad, from a byte on.
struct MmaScales {
  Reg word, byte, lane;
};

/// A decoded product; Op::list holds the registers of D, A, B and C.
struct MmaOperation {
  MmaShape shape;
  Reg metadata;
  int selector = 0;
  MmaScales a, b;
};

/// Which rows and columns of D depend on bytes that nobody wrote.
struct MmaPoison {
  std::array<std::array<bool, 16>, 4> rows{};
  std::array<std::array<bool, 8>, 4> columns{};
  std::uint32_t origin = 0;
  bool isAny = false;
};

/// The operands of a product as numbers, quarter by quarter.
template <typename T> struct MmaMatrices {
  MmaMatrices(const MmaShape &shape)
      : m(shape.m), n(shape.n), k(shape.k), quarters(shape.isQuarters ? 4 : 1),
        a(quarters * m * k), b(quarters * k * n), sums(quarters * m * n),
        rowScales(m * std::max(shape.scales, 1), 1),
        columnScales(n * std::max(shape.scales, 1), 1),
        isAbsent(a.size(), shape.isSparse) {}

  T &atA(const MatrixElement &at) {
    return a[(at.quarter * m + at.row) * k + at.column];
  }
  T &atB(const MatrixElement &at) {
    return b[(at.quarter * k + at.row) * n + at.column];
  }
  T &sum(const MatrixElement &at) {
    return sums[(at.quarter * m + at.row) * n + at.column];
  }

  int m, n, k, quarters;
  std::vector<T> a, b, sums;
  std::vector<T> rowScales, columnScales; ///< [row][scale]
  std::vector<std::uint8_t> isAbsent;     ///< of a sparse A, [row][k]
};
} // namespace

/// The bits of an element of a lane's registers.
static std::uint64_t bitsAt(const Warp &warp, const Reg *registers, int packed,
                            int lane, int index) {
  int bits = 32 / packed;
  std::uint64_t word = warp.read(registers[index / packed], lane);
  return word >> bits * (index % packed) & ((std::uint64_t(1) << bits) - 1);
}

static double numberOf(std::uint64_t bits, ptx::ScalarType type,
                       int elementBits, double) {
  switch (type) {
  case ptx::ScalarType::e2m1: // of a byte its middle
    return decode(kFormatE2m1, (elementBits == 8 ? bits >> 2 : bits) & 15);
  case ptx::ScalarType::e2m3:
    return decode(kFormatE2m3, bits & 63);
  case ptx::ScalarType::e3m2:
    return decode(kFormatE3m2, bits & 63);
  default:
    return toNumber(bits, type, float());
  }
}

static std::int64_t numberOf(std::uint64_t bits, ptx::ScalarType type, int,
                             std::int64_t) {
  if (type == ptx::ScalarType::s4)
    return static_cast<std::int8_t>(bits << 4) >> 4;
  if (type == ptx::ScalarType::u4 || type == ptx::ScalarType::b1)
    return static_cast<std::int64_t>(bits);
  return toNumber(bits, type, std::int64_t());
}

/// A scale of 8 bits.
static double scaleOf(std::uint64_t bits, ptx::ScalarType type) {
  if (type == ptx::ScalarType::ue4m3)
    return decode(kFormatE4m3, bits & 0x7f);
  return bits == 0xff ? NAN : std::ldexp(1.0, static_cast<int>(bits) - 127);
}

/// The lane whose metadata tell of a group of a row, and their first bit. Of 16
/// and 32 bits two rows share a word; of fewer, a row has words of its own.
static std::pair<int, int> metadataOf(const MmaShape &shape, int selector,
                                      int row, int group) {
  int quad = row % 8 * 4, groups = shape.k / shape.groupColumns();
  if (shape.elementBits >= 16)
    return {quad + selector * groups / 4 + group / 4,
            16 * (row / 8) + 4 * (group % 4)};
  return {quad + 2 * (selector + group / 8) + row / 8, 4 * (group % 8)};
}

/// The column of A where element `column` of those that are there stands.
static int spread(const Warp &warp, const MmaOperation &mma, int row,
                  int column) {
  const MmaShape &shape = mma.shape;
  int width = shape.groupColumns(), group = column / (width / 2);
  int inGroup = column % (width / 2);
  auto [lane, first] = metadataOf(shape, mma.selector, row, group);
  auto bits = static_cast<unsigned>(warp.read(mma.metadata, lane) >> first);
  if (width == 2)
    return 2 * group + static_cast<int>(bits >> 1 & 1);
  if (width == 4)
    return 4 * group + static_cast<int>(bits >> 2 * inGroup & 3);
  // Of eight, two pairs of neighbours are there.
  return 8 * group + 2 * static_cast<int>(bits >> inGroup / 2 * 2 & 3) +
         inGroup % 2;
}

/// Read the operands; C becomes the sums.
template <typename T>
static void readMatrices(const Warp &warp, const Op &op,
                         const MmaOperation &mma, MmaMatrices<T> &to) {
  const MmaShape &shape = mma.shape;
  const Reg *a = op.list.data() + shape.registersOf(shape.typeD);
  const Reg *b = a + shape.registersA(), *c = b + shape.registersB();
  int packed = shape.packed();
  int packedC = MmaShape::packedAccumulators(shape.typeC);
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int i = 0; i < shape.registersA() * packed; ++i) {
      MatrixElement at = elementA(shape, lane, i);
      if (shape.isSparse) {
        at.column = spread(warp, mma, at.row, at.column);
        to.isAbsent[at.row * shape.k + at.column] = false;
      }
      to.atA(at) = numberOf(bitsAt(warp, a, packed, lane, i), shape.typeA,
                            shape.elementBits, T());
    }
    for (int i = 0; i < shape.registersB() * packed; ++i)
      to.atB(elementB(shape, lane, i)) =
          numberOf(bitsAt(warp, b, packed, lane, i), shape.typeB,
                   shape.elementBits, T());
    for (int i = 0; i < shape.registersOf(shape.typeC) * packedC; ++i)
      to.sum(elementC(shape, lane, i)) = numberOf(
          bitsAt(warp, c, packedC, lane, i), shape.typeC, 32 / packedC, T());
  }
}

/// The lane of a row's or a column's scales, of 16 rows or of 8 columns: two
/// lanes of each quad have those of A, one those of B.
static int scaleLane(const Warp &warp, const MmaScales &scales, bool isA,
                     int line) {
  int lane = static_cast<int>(warp.read(scales.lane, 0));
  return line % 8 * 4 + (isA ? 2 * lane + line / 8 : lane);
}

static void readScales(Warp &warp, const MmaOperation &mma, bool isA,
                       std::vector<double> &to) {
  const MmaScales &scales = isA ? mma.a : mma.b;
  int count = mma.shape.scales;
  auto first = static_cast<int>(warp.read(scales.byte, 0));
  for (int line = 0; line < (isA ? mma.shape.m : mma.shape.n); ++line)
    for (int i = 0; i < count; ++i)
      to[line * count + i] =
          scaleOf(warp.read(scales.word, scaleLane(warp, scales, isA, line)) >>
                          8 * (first + i) &
                      0xff,
                  mma.shape.scaleType);
}

/// End the launch where a selector is one that the instruction does not have.
static void checkSelectors(Warp &warp, const Op &op, const MmaOperation &mma) {
  for (bool isA : {true, false}) {
    const MmaScales &scales = isA ? mma.a : mma.b;
    std::uint64_t byte = warp.read(scales.byte, 0);
    std::uint64_t lane = warp.read(scales.lane, 0);
    unsigned count = static_cast<unsigned>(mma.shape.scales);
    if (byte % count || byte + count > 4 || lane > (isA ? 1u : 3u))
      warp.machine().findings().fault(
          FindingId::mmaSelector, warp, op, kAllLanes,
          fmt::format("the scales of {} begin at byte {} of thread {}; with {} "
                      "scale{} for a row the byte is a multiple of {} below 4 "
                      "and the thread 0 to {}",
                      isA ? "A" : "B", byte, lane, count, count == 1 ? "" : "s",
                      count, isA ? 1 : 3));
  }
}

/// Of sparse operands whose metadata are in order: each pair must be.
static void checkMetadata(Warp &warp, const Op &op, const MmaOperation &mma) {
  const MmaShape &shape = mma.shape;
  if (!shape.isSparse || shape.elementBits == 32 || !op.imm)
    return;
  for (int row = 0; row < shape.m; ++row)
    for (int group = 0; group < shape.k / shape.groupColumns(); ++group) {
      auto [lane, first] = metadataOf(shape, mma.selector, row, group);
      auto bits = static_cast<unsigned>(warp.read(mma.metadata, lane) >> first);
      LaneMask bit = LaneMask(1) << lane;
      if ((bits & 3) < (bits >> 2 & 3) || (warp.poison(mma.metadata) & bit))
        continue;
      warp.machine().findings().fault(
          FindingId::mmaSelector, warp, op, bit,
          fmt::format("the metadata {:#x} name elements {} and {} of a group "
                      "of row {}; .sp::ordered_metadata takes them in "
                      "increasing order",
                      static_cast<std::uint32_t>(
                          warp.read(mma.metadata, lane)),
                      bits & 3, bits >> 2 & 3, row));
    }
}

/// Sparse products of floats that have hardware to be held against.
static void addSparse(const MmaShape &shape, MmaMatrices<double> &x) {
  std::vector<float> a(x.a.begin(), x.a.end()), b(x.b.begin(), x.b.end());
  std::vector<float> sums(x.sums.begin(), x.sums.end());
  addProducts({x.m, x.n, x.k, shape.typeA, shape.typeB, shape.typeD}, a.data(),
              b.data(), sums.data(), x.isAbsent.data());
  x.sums.assign(sums.begin(), sums.end());
}

static void multiplyAll(const MmaShape &shape, MmaMatrices<double> &x) {
  if (shape.isSparse && shape.elementBits >= 16)
    return addSparse(shape, x);
  int scales = std::max(shape.scales, 1), block = shape.k / scales;
  for (int q = 0; q < x.quarters; ++q)
    for (int row = 0; row < x.m; ++row)
      for (int column = 0; column < x.n; ++column) {
        double &sum = x.sum({row, column, q});
        for (int s = 0; s < scales; ++s) {
          double part = 0;
          for (int k = s * block; k < (s + 1) * block; ++k)
            part += x.atA({row, k, q}) * x.atB({k, column, q});
          sum += part * x.rowScales[row * scales + s] *
                 x.columnScales[column * scales + s];
        }
      }
}

static void multiplyAll(const MmaShape &shape, MmaMatrices<std::int64_t> &x) {
  for (int row = 0; row < x.m; ++row)
    for (int column = 0; column < x.n; ++column) {
      std::int64_t &sum = x.sum({row, column});
      for (int k = 0; k < x.k; ++k) {
        std::int64_t a = x.atA({row, k}), b = x.atB({k, column});
        sum += shape.isExclusive ? a ^ b : a * b;
      }
    }
}

static std::uint64_t bitsOf(double value, ptx::ScalarType type, bool) {
  if (type == ptx::ScalarType::f16)
    return floatToHalf(toOddFloat(value));
  return std::bit_cast<std::uint32_t>(canonical(static_cast<float>(value)));
}
static std::uint64_t bitsOf(std::int64_t value, ptx::ScalarType type,
                            bool isSaturated) {
  return fromNumber(value, type, isSaturated);
}

/// Rows of D that unwritten elements of A spoil, and its scales and metadata;
/// columns that those of B do.
static MmaPoison poisonOf(const Warp &warp, const Op &op,
                          const MmaOperation &mma) {
  const MmaShape &shape = mma.shape;
  MmaPoison poison;
  auto note = [&](const Reg &reg, LaneMask lanes) {
    bool isNew = !poison.isAny && (warp.poison(reg) & lanes);
    if (isNew)
      poison.origin = warp.poisonOrigin(reg);
    poison.isAny |= (warp.poison(reg) & lanes) != 0;
    return (warp.poison(reg) & lanes) != 0;
  };
  const Reg *a = op.list.data() + shape.registersOf(shape.typeD);
  const Reg *b = a + shape.registersA(), *c = b + shape.registersB();
  int packed = shape.packed();
  for (int lane = 0; lane < kLanes; ++lane) {
    LaneMask bit = LaneMask(1) << lane;
    for (int i = 0; i < shape.registersA() * packed; ++i)
      if (note(a[i / packed], bit)) {
        MatrixElement at = elementA(shape, lane, i);
        poison.rows[at.quarter][at.row] = true;
      }
    for (int i = 0; i < shape.registersB() * packed; ++i)
      if (note(b[i / packed], bit)) {
        MatrixElement at = elementB(shape, lane, i);
        poison.columns[at.quarter][at.column] = true;
      }
    for (int i = 0; i < shape.registersOf(shape.typeC); ++i)
      note(c[i], bit);
  }
  for (int row = 0; row < shape.m && (shape.isSparse || shape.scales); ++row) {
    if (shape.isSparse)
      for (int group = 0; group < shape.k / shape.groupColumns(); ++group)
        poison.rows[0][row] |= note(
            mma.metadata,
            LaneMask(1) << metadataOf(shape, mma.selector, row, group).first);
    if (shape.scales)
      poison.rows[0][row] |=
          note(mma.a.word, LaneMask(1) << scaleLane(warp, mma.a, true, row));
  }
  for (int column = 0; column < shape.n && shape.scales; ++column)
    poison.columns[0][column] |=
        note(mma.b.word, LaneMask(1) << scaleLane(warp, mma.b, false, column));
  return poison;
}

/// Write D, with what is not known of it. C may lie where D does.
template <typename T>
static void writeSums(Warp &warp, const Op &op, const MmaShape &shape,
                      MmaMatrices<T> &x, const MmaPoison &poison) {
  int packed = MmaShape::packedAccumulators(shape.typeD);
  int packedC = MmaShape::packedAccumulators(shape.typeC);
  const Reg *d = op.list.data();
  const Reg *c = d + op.list.size() - shape.registersOf(shape.typeC);
  int count = shape.registersOf(shape.typeD);
  std::vector<std::array<std::uint64_t, kLanes>> bad(count);
  for (int i = 0; i < count && poison.isAny; ++i)
    for (int lane = 0; lane < kLanes; ++lane)
      for (int part = 0; part < packed; ++part) {
        int index = i * packed + part;
        MatrixElement at = elementC(shape, lane, index);
        bool isBad = poison.rows[at.quarter][at.row] ||
                     poison.columns[at.quarter][at.column] ||
                     warp.poisonBits(c[index / packedC], lane) >>
                             32 / packedC * (index % packedC) << (64 - 32 / packedC);
        if (isBad)
          bad[i][lane] |= (packed == 1 ? 0xffffffff : 0xffff) << 16 * part;
      }
  for (int i = 0; i < count; ++i) {
    warp.setPoison(d[i], kAllLanes, 0);
    warp.setPoisonOrigin(d[i], poison.origin);
    for (int lane = 0; lane < kLanes; ++lane) {
      std::uint64_t bits = 0;
      for (int part = 0; part < packed; ++part)
        bits |= bitsOf(x.sum(elementC(shape, lane, i * packed + part)),
                       shape.typeD, shape.isSaturated)
                << 16 * part;
      warp.write(d[i], lane, bits);
      if (bad[i][lane])
        warp.setPoisonBits(d[i], lane, bad[i][lane]);
    }
  }
}

template <typename T>
static Step multiplySpread(Warp &warp, const Op &op, LaneMask active) {
  checkWholeWarp(warp, op, active);
  const auto &mma = *static_cast<const MmaOperation *>(op.extra.get());
  MmaMatrices<T> matrices(mma.shape);
  if (mma.shape.scales)
    checkSelectors(warp, op, mma);
  checkMetadata(warp, op, mma);
  readMatrices(warp, op, mma, matrices);
  if constexpr (std::is_same_v<T, double>)
    if (mma.shape.scales) {
      readScales(warp, mma, true, matrices.rowScales);
      readScales(warp, mma, false, matrices.columnScales);
    }
  multiplyAll(mma.shape, matrices);
  writeSums(warp, op, mma.shape, matrices, poisonOf(warp, op, mma));
  return Step::next;
}

/// {byte-id, thread-id}
static void decodeSelectors(Decoder &decoder,
                            const ptx::Instruction &instruction,
                            const ptx::Operand &operand, MmaScales &scales) {
  std::vector<Reg> registers = decoder.vector(operand, 2);
  if (registers.size() != 2)
    decoder.refuse(instruction, "scales are selected by {byte, thread}");
  scales.byte = registers[0];
  scales.lane = registers[1];
}

void decodeMmaProduct(Decoder &decoder, const ptx::Instruction &instruction,
                      const MmaShape &shape, Op &op) {
  MmaOperation mma{.shape = shape};
  const auto &operands = instruction.operands;
  std::size_t at = 4;
  if (shape.isSparse) {
    op.src[0] = mma.metadata = expectWidth(
        decoder, instruction, decoder.reg(operands[at++], 4), 4);
    mma.selector = static_cast<int>(operands[at++].bits);
    if (mma.selector < 0 || mma.selector > shape.lastSelector())
      decoder.refuse(instruction,
                     fmt::format("the sparsity selector {}; 0 to {} are "
                                 "accepted",
                                 mma.selector, shape.lastSelector()));
    op.imm = instruction.has("sp::ordered_metadata");
  }
  for (MmaScales *scales : {&mma.a, &mma.b}) {
    if (!shape.scales)
      break;
    scales->word = expectWidth(decoder, instruction,
                               decoder.vector(operands[at++], 4).front(), 4);
    decodeSelectors(decoder, instruction, operands[at++], *scales);
  }
  op.src[1] = mma.a.word;
  op.src[2] = mma.b.word;
  op.handler = shape.typeC == ptx::ScalarType::s32
                   ? multiplySpread<std::int64_t>
                   : multiplySpread<double>;
  op.extra = std::make_shared<MmaOperation>(mma);
}

} // namespace kiln::sim
