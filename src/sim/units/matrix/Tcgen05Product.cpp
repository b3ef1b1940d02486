// Tcgen05Product: operands, the sums, and what is not known of them.
//
// Everything is held as columns of lanes, as tensor memory has it: a step of K
// is one column of A times one row of B. Where rows are lanes and the sums are
// plain f32, they are added up where they lie; else in a tile beside it.
#include "sim/units/matrix/Tcgen05Product.h"
#include "sim/units/matrix/AlignedSum.h"
#include "sim/units/matrix/MatrixAccess.h"
#include "support/Half.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace kiln::sim {

static constexpr int kMaxRows = 128, kMaxTensorColumns = 256, kMaxK = 128;

AccumulatorLayout::AccumulatorLayout(const TensorForm &form,
                                     const TensorShape &shape)
    : rows_(shape.rows(form)), width_(shape.n) {
  bool isSplit = form.isWeightStationary || form.group == 2;
  if (rows_ == 128)
    return;
  if (!isSplit) { // 16 rows in each quarter of the lanes
    chunk_ = 16;
    stride_ = 32;
    return;
  }
  // Columns beyond a half, or a quarter, lie in the lanes below.
  width_ = shape.n * rows_ / 128;
  side_ = rows_;
}

std::vector<TensorRange>
AccumulatorLayout::ranges(TensorAddress address) const {
  auto columns = static_cast<std::uint32_t>(width_);
  if (chunk_ == 128)
    return {{address.lane, address.column, 128, columns}};
  std::vector<TensorRange> all;
  for (std::uint32_t i = 0; i < 4; ++i)
    all.push_back({address.lane + 32 * i, address.column, 16, columns});
  return all;
}

std::vector<TensorRange>
AccumulatorLayout::rowRanges(TensorAddress address,
                             std::uint32_t columns) const {
  std::vector<TensorRange> all = ranges(address);
  for (TensorRange &range : all)
    range.columns = columns;
  return all;
}

namespace {
/// Operands as floats, and the rows of them that nobody wrote wholly.
struct Operands {
  alignas(64) std::array<float, kMaxK * kMaxRows> a;          ///< [k][row]
  alignas(64) std::array<float, kMaxK * kMaxTensorColumns> b; ///< [k][column]
  std::vector<bool> rows, columns; ///< that were not written
  /// Where such a row, or column, was read first.
  std::uint32_t originOfRows = 0, originOfColumns = 0;
  /// By row, or column, and block of K; empty: there are no scales.
  std::vector<float> scalesA, scalesB;

  bool isWritten() const {
    return std::find(rows.begin(), rows.end(), true) == rows.end() &&
           std::find(columns.begin(), columns.end(), true) == columns.end();
  }
};
} // namespace

/// The rows of A in a CTA's tensor memory.
static void loadTensorA(Warp &warp, const Op &op, const IssuedProduct &issued,
                        Cta &cta, const AccumulatorLayout &layout,
                        Operands &operands) {
  TensorMemory &memory = cta.tensorMemory();
  const TensorShape &shape = issued.shape;
  float sign = shape.isANegated ? -1.0f : 1.0f;
  int columns = shape.columnsA(issued.product->form);
  bool isShifted = issued.product->form.isShifted;
  for (int row = 0; row < layout.rows(); ++row) {
    int from = isShifted ? std::min(row + 1, layout.rows() - 1) : row;
    std::uint32_t lane = issued.tensorA.lane + layout.at(from, 0).lane;
    std::array<std::uint32_t, kTensorAColumns> words;
    for (std::uint32_t i = 0; i < kTensorAColumns; ++i) {
      std::uint32_t column = issued.tensorA.column + i;
      words[i] = *memory.at(lane, column);
      if (memory.valid.all(TensorMemory::offset(lane, column), 4))
        continue;
      operands.rows[static_cast<std::size_t>(row)] = true;
      if (!operands.originOfRows)
        operands.originOfRows = originOf(warp, op, memory, lane, column);
    }
    std::array<std::uint8_t, 4 * kTensorAColumns> bytes;
    std::memcpy(bytes.data(), words.data(), sizeof(bytes));
    for (int k = 0; k < columns; ++k) {
      float value;
      // In tensor memory each has a byte: 4 bits stand in its middle.
      if (shape.typeA == OperandType::e2m1 && !shape.isPacked) {
        auto middle = static_cast<std::uint8_t>(bytes[k] >> 2);
        value = elementOf(&middle, 0, shape.typeA);
      } else if (shape.typeA == OperandType::e2m3 ||
                 shape.typeA == OperandType::e3m2) {
        value = elementOf(&bytes[static_cast<std::size_t>(k)], 0, shape.typeA);
      } else {
        value = elementOf(bytes.data(), k, shape.typeA);
      }
      operands.a[static_cast<std::size_t>(k * kMaxRows + row)] = sign * value;
    }
  }
}

/// The scales of `count` rows: row r has its own in lane r % 32 of column
/// r / 32, in each quarter of the lanes; `quarter` is the one that is read.
static void loadScales(Warp &warp, const Op &op, const IssuedProduct &issued,
                       Cta &cta, bool isA, int count,
                       std::vector<float> &scales, std::vector<bool> &unwritten,
                       std::uint32_t &origin) {
  const TensorShape &shape = issued.shape;
  TensorMemory &memory = cta.tensorMemory();
  TensorAddress from = isA ? issued.scaleA : issued.scaleB;
  int first = isA ? shape.scaleA : shape.scaleB;
  int blocks = shape.k / issued.product->form.blockElements;
  scales.resize(static_cast<std::size_t>(count * blocks));
  for (int row = 0; row < count; ++row) {
    auto lane = static_cast<std::uint32_t>(row % 32);
    std::uint32_t column = from.column + static_cast<std::uint32_t>(row / 32);
    std::uint32_t word = *memory.at(lane, column);
    auto offset = TensorMemory::offset(lane, column);
    if (!memory.valid.all(offset + static_cast<std::size_t>(first),
                          static_cast<std::size_t>(blocks))) {
      unwritten[static_cast<std::size_t>(row)] = true;
      if (!origin)
        origin = originOf(warp, op, memory, lane, column);
    }
    for (int block = 0; block < blocks; ++block)
      scales[static_cast<std::size_t>(row * blocks + block)] =
          scaleOf(static_cast<std::uint8_t>(word >> 8 * (first + block)),
                  shape.hasPowers);
  }
}

/// B, of which each CTA of the group has its part of the columns.
static void loadB(const IssuedProduct &issued, Operands &operands) {
  const TensorShape &shape = issued.shape;
  operands.columns.assign(static_cast<std::size_t>(shape.n), false);
  operands.originOfColumns = 0;
  int first = 0;
  for (Cta *cta : issued.ctas) {
    std::vector<bool> unwritten(static_cast<std::size_t>(issued.viewB.rows));
    loadColumns(cta->shared, cta->sharedValid, issued.viewB, shape.typeB,
                shape.isBNegated ? -1.0f : 1.0f, operands.b.data() + first,
                kMaxTensorColumns, unwritten);
    std::copy(unwritten.begin(), unwritten.end(),
              operands.columns.begin() + first);
    first += issued.viewB.rows;
  }
}

static void loadRows(Warp &warp, const Op &op, const IssuedProduct &issued,
                     Cta &cta, const AccumulatorLayout &layout,
                     Operands &operands) {
  if (issued.product->form.isAInTensor)
    return loadTensorA(warp, op, issued, cta, layout, operands);
  loadColumns(cta.shared, cta.sharedValid, issued.viewA, issued.shape.typeA,
              issued.shape.isANegated ? -1.0f : 1.0f, operands.a.data(),
              kMaxRows, operands.rows);
}

static void loadA(Warp &warp, const Op &op, const IssuedProduct &issued,
                  Cta &cta, const AccumulatorLayout &layout,
                  Operands &operands) {
  operands.rows.assign(static_cast<std::size_t>(layout.rows()), false);
  operands.originOfRows = 0;
  loadRows(warp, op, issued, cta, layout, operands);
  if (!issued.product->form.isSparse)
    return;
  std::vector<float> there(operands.a.begin(), operands.a.end());
  spreadRows(warp, op, issued, cta, layout.rows(), there.data(),
             operands.a.data(), operands.rows, operands.originOfRows);
}

/// Sums as floats, [column][row].
using Tile = std::array<float, kMaxTensorColumns * kMaxRows>;

static std::uint32_t *bitsOf(Tile &tile) {
  return reinterpret_cast<std::uint32_t *>(tile.data());
}

/// The sum of a block's products times the scales of row and column.
static void addScaled(const TensorShape &shape, int rows, int blockElements,
                      const Operands &operands, Tile &tile) {
  int blocks = shape.k / blockElements;
  auto part = std::make_unique<Tile>();
  for (int block = 0; block < blocks; ++block) {
    int first = block * blockElements;
    addOuterProducts(
        shape.n, rows, blockElements, operands.a.data() + first * kMaxRows,
        kMaxRows, operands.b.data() + first * kMaxTensorColumns,
        kMaxTensorColumns, bitsOf(*part), kMaxRows, /*isAdded=*/false);
    for (int column = 0; column < shape.n; ++column) {
      double scaleB =
          operands.scalesB[static_cast<std::size_t>(column * blocks + block)];
      for (int row = 0; row < rows; ++row) {
        auto at = static_cast<std::size_t>(column * kMaxRows + row);
        double scale =
            scaleB *
            operands.scalesA[static_cast<std::size_t>(row * blocks + block)];
        tile[at] = static_cast<float>(tile[at] + (*part)[at] * scale);
      }
    }
  }
}

/// Add a product to sums, [column][row].
static void addProducts(const TensorShape &shape, bool isFast, int rows,
                        const Operands &operands, float *sums) {
  if (shape.typeD == AccumulatorType::s32)
    return addOuterProducts(shape.n, rows, shape.k, operands.a.data(), kMaxRows,
                            operands.b.data(), kMaxTensorColumns,
                            reinterpret_cast<std::uint32_t *>(sums), kMaxRows,
                            /*isAdded=*/true);
  addAligned({.isRoundedAfter = shape.typeD == AccumulatorType::f16,
              .leastX = leastNormal(shape.typeB),
              .leastY = leastNormal(shape.typeA),
              .isInOrder = isFast},
             {.lines = shape.n,
              .columns = rows,
              .k = shape.k,
              .x = operands.b.data(),
              .lineStep = 1,
              .step = kMaxTensorColumns,
              .y = operands.a.data(),
              .pitch = kMaxRows},
             sums, kMaxRows);
}

/// One sum as tensor memory holds it.
static std::uint32_t toWord(const TensorShape &shape, float sum,
                            std::uint32_t before, bool isAdded) {
  switch (shape.typeD) {
  case AccumulatorType::f32:
    return std::bit_cast<std::uint32_t>(sum);
  case AccumulatorType::f16:
    return roundToHalf(sum);
  case AccumulatorType::s32:
    break;
  }
  // Sums of one instruction stay below 2^24: they are exact as floats.
  auto total = static_cast<std::int64_t>(sum) +
               (isAdded ? static_cast<std::int32_t>(before) : 0);
  if (shape.isSaturated)
    total = std::clamp<std::int64_t>(total, INT32_MIN, INT32_MAX);
  return static_cast<std::uint32_t>(total);
}

/// Whether a lane of D stays as it is.
static bool isDisabled(const IssuedProduct &issued, int number,
                       std::uint32_t lane) {
  std::size_t word = static_cast<std::size_t>(number) * 4 + lane / 32;
  return word < issued.disabled.size() &&
         (issued.disabled[word] >> lane % 32 & 1);
}

/// Call `body(row, column, lane, its column)` for D in the CTA of that number
/// in the group, but for lanes that stay as they are.
template <typename Body>
static void forEachSum(const IssuedProduct &issued, int number,
                       const AccumulatorLayout &layout, Body &&body) {
  for (int column = 0; column < issued.shape.n; ++column)
    for (int row = 0; row < layout.rows(); ++row) {
      TensorAddress at = layout.at(row, column);
      at.lane += issued.d.lane;
      at.column += issued.d.column;
      if (!isDisabled(issued, number, at.lane))
        body(row, column, at);
    }
}

/// Beside tensor memory, whatever the types and the layout.
static void addInTile(const IssuedProduct &issued, bool isFast, int number,
                      const AccumulatorLayout &layout,
                      const Operands &operands) {
  const TensorShape &shape = issued.shape;
  const TensorForm &form = issued.product->form;
  TensorMemory &memory =
      issued.ctas[static_cast<std::size_t>(number)]->tensorMemory();
  auto tile = std::make_unique<Tile>();
  tile->fill(0);
  float scaleD = std::ldexp(1.0f, -issued.product->shiftD);
  if (issued.isAdded && shape.typeD != AccumulatorType::s32)
    forEachSum(
        issued, number, layout, [&](int row, int column, TensorAddress at) {
          std::uint32_t word = *memory.at(at.lane, at.column);
          float value = shape.typeD == AccumulatorType::f16
                            ? halfToFloat(static_cast<std::uint16_t>(word))
                            : std::bit_cast<float>(word);
          (*tile)[static_cast<std::size_t>(column * kMaxRows + row)] =
              value * scaleD;
        });
  if (form.isBlockScaled())
    addScaled(shape, layout.rows(), form.blockElements, operands, *tile);
  else
    addProducts(shape, isFast, layout.rows(), operands, tile->data());
  forEachSum(
      issued, number, layout, [&](int row, int column, TensorAddress at) {
        std::uint32_t &word = *memory.at(at.lane, at.column);
        word = toWord(
            shape, (*tile)[static_cast<std::size_t>(column * kMaxRows + row)],
            word, issued.isAdded);
      });
}

/// Where unwritten rows of A and columns of B in shared memory were read first.
static void findOrigins(Warp &warp, const Op &op, const IssuedProduct &issued,
                        const Cta &cta, Operands &operands) {
  auto firstOf = [](const std::vector<bool> &unwritten) {
    return static_cast<int>(
        std::find(unwritten.begin(), unwritten.end(), true) -
        unwritten.begin());
  };
  int row = firstOf(operands.rows), column = firstOf(operands.columns);
  bool hasRow = row < static_cast<int>(operands.rows.size());
  if (hasRow && !operands.originOfRows)
    operands.originOfRows = originOf(warp, op, cta, issued.viewA, row);
  int each = issued.viewB.rows;
  bool hasColumn = column < static_cast<int>(operands.columns.size());
  if (hasColumn && !operands.originOfColumns)
    operands.originOfColumns = originOf(
        warp, op, *issued.ctas[static_cast<std::size_t>(column / each)],
        issued.viewB, column % each);
}

/// Mark D as written, but for what depends on bytes that nobody wrote.
static void markSums(Warp &warp, const Op &op, const IssuedProduct &issued,
                     int number, const AccumulatorLayout &layout,
                     Operands &operands) {
  Cta &cta = *issued.ctas[static_cast<std::size_t>(number)];
  TensorMemory &memory = cta.tensorMemory();
  if (operands.isWritten()) {
    if (issued.isAdded)
      return; // as it was
    if (issued.disabled.empty() && layout.isPlain())
      return memory.valid.set(TensorMemory::offset(0, issued.d.column),
                              static_cast<std::size_t>(issued.shape.n) *
                                  TensorMemory::kColumnBytes);
  } else {
    findOrigins(warp, op, issued, cta, operands);
  }
  forEachSum(
      issued, number, layout, [&](int row, int column, TensorAddress at) {
        bool isUnwritten = operands.rows[static_cast<std::size_t>(row)] ||
                           operands.columns[static_cast<std::size_t>(column)];
        std::size_t offset = TensorMemory::offset(at.lane, at.column);
        if (isUnwritten) {
          memory.valid.clear(offset, 4);
          memory.valid.setOrigin(offset, 4,
                                 operands.rows[static_cast<std::size_t>(row)]
                                     ? operands.originOfRows
                                     : operands.originOfColumns);
        } else if (!issued.isAdded)
          memory.valid.set(offset, 4);
      });
}

void multiply(Warp &warp, const Op &op, const IssuedProduct &issued) {
  const TensorShape &shape = issued.shape;
  const TensorForm &form = issued.product->form;
  AccumulatorLayout layout(form, shape);
  static thread_local Operands operands;
  loadB(issued, operands);
  for (std::size_t number = 0; number < issued.ctas.size(); ++number) {
    Cta &cta = *issued.ctas[number];
    loadA(warp, op, issued, cta, layout, operands);
    if (form.isBlockScaled()) {
      loadScales(warp, op, issued, cta, true, layout.rows(), operands.scalesA,
                 operands.rows, operands.originOfRows);
      loadScales(warp, op, issued, cta, false, shape.n, operands.scalesB,
                 operands.columns, operands.originOfColumns);
    }
    bool isFast = warp.machine().config().is_mma_fast;
    bool isInPlace = layout.isPlain() && issued.disabled.empty() &&
                     shape.typeD == AccumulatorType::f32 &&
                     !form.isBlockScaled() && issued.product->shiftD == 0;
    if (isInPlace) {
      std::uint32_t *sums = cta.tensorMemory().at(0, issued.d.column);
      if (!issued.isAdded)
        std::fill_n(sums, shape.n * TensorMemory::kLanes, 0u);
      addProducts(shape, isFast, kMaxRows, operands,
                  reinterpret_cast<float *>(sums));
    } else
      addInTile(issued, isFast, static_cast<int>(number), layout, operands);
    markSums(warp, op, issued, static_cast<int>(number), layout, operands);
  }
}

} // namespace kiln::sim
