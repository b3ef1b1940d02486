// TensorMemory: who has allocated which columns.
#include "sim/machine/memory/TensorMemory.h"

#include <algorithm>

namespace kiln::sim {

TensorMemory::TensorMemory(Cta &owner) {
  share_.take(std::uint64_t(kColumns) * kColumnBytes, "tensor memory");
  words_.resize(kColumns * kLanes);
  valid = ValidBits(kColumns * kColumnBytes);
  shadow.owner = &owner;
  shadow.isTensor = true;
}

bool TensorMemory::isFree(std::uint32_t column, std::uint32_t columns) const {
  return std::none_of(allocations.begin(), allocations.end(),
                      [&](const Allocation &one) {
                        return one.column < column + columns &&
                               column < one.column + one.columns;
                      });
}

std::optional<std::uint32_t> TensorMemory::findFree(const TensorMemory &one,
                                                    const TensorMemory &other,
                                                    std::uint32_t columns) {
  for (std::uint32_t column = 0; column + columns <= kColumns;
       column += kLeastColumns)
    if (one.isFree(column, columns) && other.isFree(column, columns))
      return column;
  return std::nullopt;
}

void TensorMemory::allocate(const Allocation &allocation) {
  allocations.insert(
      std::lower_bound(allocations.begin(), allocations.end(), allocation,
                       [](const Allocation &a, const Allocation &b) {
                         return a.column < b.column;
                       }),
      allocation);
  lastColumns = allocation.columns;
}

TensorMemory::Allocation *TensorMemory::find(std::uint32_t column) {
  for (Allocation &one : allocations)
    if (one.column == column)
      return &one;
  return nullptr;
}

void TensorMemory::free(std::uint32_t column) {
  Allocation gone = *find(column);
  valid.clear(offset(0, gone.column), gone.columns * kColumnBytes);
  shadow.cells.forget(offset(0, gone.column), gone.columns * kColumnBytes);
  std::erase_if(allocations, [&](const Allocation &one) {
    return one.column == gone.column;
  });
}

std::optional<std::uint32_t>
TensorMemory::firstFree(std::uint32_t column, std::uint32_t columns) const {
  std::uint32_t end = column + columns;
  for (const Allocation &one : allocations)
    if (one.column <= column)
      column = std::max(column, one.column + one.columns);
  if (column >= end)
    return std::nullopt;
  return column;
}

} // namespace kiln::sim
