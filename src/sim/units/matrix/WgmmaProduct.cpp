// WgmmaProduct: operands, the product of each warp, and what is not known of
// it.
#include "sim/units/matrix/WgmmaProduct.h"
#include "sim/units/matrix/MatrixAccess.h"
#include "support/Error.h"

#include <bitset>

namespace kiln::sim {

static constexpr int kMaxColumns = 256; ///< of an accumulator

std::vector<OperandView> viewsOf(const Product &product,
                                 std::uint64_t descriptorA,
                                 std::uint64_t descriptorB) {
  std::vector<OperandView> views = {
      viewOf(descriptorB, product.shape, /*isA=*/false)};
  if (product.fragment.empty())
    views.push_back(viewOf(descriptorA, product.shape, /*isA=*/true));
  return views;
}

/// Whether some byte of an operand's row was never written.
static bool isRowUnwritten(const Cta &cta, const OperandView &view, int row) {
  for (int k = 0; k < view.k; ++k)
    if (!cta.sharedValid.all(view.address(row, k) - kFirstSharedAddress,
                             static_cast<std::size_t>(view.elementBytes)))
      return true;
  return false;
}

/// One warp's rows of A, and those with bytes that were never written.
static std::bitset<kWarpRows> loadRows(Warp &warp, const Product &product,
                                       const OperandView *view, int firstRow,
                                       float *out) {
  std::bitset<kWarpRows> unwritten;
  if (view) {
    const Cta &cta = warp.cta();
    if (!loadOperand(cta.shared, cta.sharedValid, *view, product.shape,
                     firstRow, kWarpRows, out))
      for (int row = 0; row < kWarpRows; ++row)
        unwritten[row] = isRowUnwritten(cta, *view, firstRow + row);
    return unwritten;
  }
  std::array<const std::uint32_t *, kFragmentRegisters> registers;
  for (int i = 0; i < kFragmentRegisters; ++i) {
    registers[i] = warp.lanes<std::uint32_t>(product.fragment[i]);
    forEachLane(warp.poison(product.fragment[i]),
                [&](int lane) { unwritten[lane / 4 + 8 * (i % 2)] = true; });
  }
  loadFragment(registers.data(), product.shape, out);
  return unwritten;
}

/// Unwritten rows of A and columns of B (rows of its view) spoil those of the
/// accumulator.
static void poisonAccumulator(Warp &warp, const Product &product,
                              const std::bitset<kWarpRows> &rows,
                              const std::bitset<kMaxColumns> &columns,
                              bool isAdded) {
  bool isPacked = product.shape.typeD == AccumulatorType::f16;
  for (std::size_t i = 0; i < product.accumulator.size(); ++i) {
    const Reg &reg = product.accumulator[i];
    if (!isAdded)
      warp.setPoison(reg, kAllLanes, 0);
    if (rows.none() && columns.none())
      continue;
    // One element of 32 bits in a register, or two neighbours of a row.
    std::size_t element = isPacked ? 2 * i : i;
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      std::size_t row = lane / 4 + 8 * (element >> 1 & 1);
      std::size_t column = 8 * (element >> 2) + 2 * (lane % 4) + (element & 1);
      std::uint64_t bits = 0;
      if (rows[row] || columns[column])
        bits |= isPacked ? 0xffff : ~std::uint64_t(0);
      if (isPacked && (rows[row] || columns[column + 1]))
        bits |= 0xffff0000;
      int number = static_cast<int>(lane);
      warp.setPoisonBits(reg, number, bits | warp.poisonBits(reg, number));
    }
  }
}

/// What is not known of a sparse product: as of any other.
static void poisonSparse(const std::array<Warp *, kWarpsPerGroup> &group,
                         const Op &op, const Product &product,
                         const std::vector<OperandView> &views, bool isAdded) {
  const Cta &cta = group[0]->cta();
  std::bitset<kMaxColumns> columns;
  for (int n = 0; n < product.shape.n; ++n)
    columns[n] = isRowUnwritten(cta, views[0], n);
  for (int w = 0; w < kWarpsPerGroup; ++w) {
    std::bitset<kWarpRows> rows;
    for (int row = 0; row < kWarpRows && views.size() > 1; ++row)
      rows[row] = isRowUnwritten(cta, views[1], kWarpRows * w + row);
    for (const Reg &reg : product.fragment)
      if (group[w]->poison(reg))
        rows.set();
    if (group[w]->poison(product.metadata))
      rows.set();
    poisonAccumulator(*group[w], product, rows, columns, isAdded);
    if (columns.any())
      for (const Reg &reg : product.accumulator)
        group[w]->setPoisonOrigin(
            reg, originOf(*group[w], op, cta, views[0],
                          static_cast<int>(columns._Find_first())));
  }
}

/// A sparse product: K is twice as long, and half of A is there.
static void multiplySparse(const std::array<Warp *, kWarpsPerGroup> &group,
                           const Product &product,
                           const std::vector<OperandView> &views,
                           bool isAdded) {
  const ProductShape &shape = product.shape;
  Product half = product;
  half.shape.k /= 2;
  half.shape.isSparse = false;
  alignas(64) std::array<float, kMaxColumns * 64> matrixB;
  loadColumns(group[0]->cta().shared, views[0], shape, matrixB.data());
  for (int w = 0; w < kWarpsPerGroup; ++w) {
    alignas(64) std::array<float, kWarpRows * 32> there;
    alignas(64) std::array<float, kWarpRows * 64> matrixA;
    std::array<std::uint8_t, kWarpRows * 64> isAbsent;
    Warp &warp = *group[w];
    loadRows(warp, half, views.size() > 1 ? &views[1] : nullptr, kWarpRows * w,
             there.data());
    expandRows(shape, there.data(), warp.lanes<std::uint32_t>(product.metadata),
               product.selector, matrixA.data(), isAbsent.data());
    std::vector<std::uint32_t *> registers;
    for (const Reg &reg : product.accumulator)
      registers.push_back(warp.lanes<std::uint32_t>(reg));
    multiplyWarp(shape, /*isFast=*/false, matrixA.data(), matrixB.data(),
                 registers.data(), isAdded, isAbsent.data());
  }
}

void multiply(const std::array<Warp *, kWarpsPerGroup> &group, const Op &op,
              std::uint64_t descriptorA, std::uint64_t descriptorB,
              bool isAdded) {
  const auto &product = *static_cast<const Product *>(op.extra.get());
  Warp &first = *group[0];
  Cta &cta = first.cta();
  std::vector<OperandView> views = viewsOf(product, descriptorA, descriptorB);
  for (const OperandView &view : views)
    checkBounds(first, op, cta, view);
  if (product.shape.isSparse) {
    if (first.machine().config().checks)
      poisonSparse(group, op, product, views, isAdded);
    return multiplySparse(group, product, views, isAdded);
  }
  alignas(64) std::array<float, kMaxColumns * 32> matrixB;
  std::bitset<kMaxColumns> columns; // that were never wholly written
  if (!loadOperand(cta.shared, cta.sharedValid, views[0], product.shape, 0,
                   product.shape.n, matrixB.data()))
    for (int n = 0; n < product.shape.n; ++n)
      columns[n] = isRowUnwritten(cta, views[0], n);
  for (int w = 0; w < kWarpsPerGroup; ++w) {
    alignas(64) std::array<float, kWarpRows * 32> matrixA;
    Warp &warp = *group[w];
    std::bitset<kWarpRows> rows =
        loadRows(warp, product, views.size() > 1 ? &views[1] : nullptr,
                 kWarpRows * w, matrixA.data());
    std::vector<std::uint32_t *> registers;
    for (const Reg &reg : product.accumulator)
      registers.push_back(warp.lanes<std::uint32_t>(reg));
    if (warp.machine().config().checks) {
      poisonAccumulator(warp, product, rows, columns, isAdded);
      std::uint32_t origin = 0;
      if (rows.any() && views.size() > 1)
        origin = originOf(warp, op, cta, views[1],
                          kWarpRows * w + static_cast<int>(rows._Find_first()));
      else if (columns.any())
        origin = originOf(warp, op, cta, views[0],
                          static_cast<int>(columns._Find_first()));
      if (origin)
        for (const Reg &reg : product.accumulator)
          warp.setPoisonOrigin(reg, origin);
    }
    multiplyWarp(product.shape, warp.machine().config().is_mma_fast,
                 matrixA.data(), matrixB.data(), registers.data(), isAdded);
  }
}

} // namespace kiln::sim
