// Shadow: cells by the page, and what does not fit into one.
#include "sim/Shadow.h"

#include <algorithm>

namespace kiln::sim {

LaneMask Record::lanesOf(std::uint16_t overlap) const {
  if (!(flags & kSplit))
    return lanes;
  int base = flags >> kBaseShift & 15, size = flags >> kSizeShift & 7;
  int first = firstLane(lanes);
  LaneMask touched = 0;
  for (unsigned left = overlap; left; left &= left - 1)
    touched |=
        LaneMask(1) << (first + ((std::countr_zero(left) - base) >> size));
  return touched;
}

Cell *Shadow::find(std::uint64_t page) {
  auto &cells = pages_[page];
  if (!cells)
    cells = std::make_unique<Cell[]>(kPageCells);
  return cells.get();
}

void Shadow::add(Cell &cell, const Record &record) {
  for (Record &slot : cell.records)
    if (!slot.bytes) {
      slot = record;
      return;
    }
  if (!cell.more) {
    lists_.emplace_back();
    cell.more = static_cast<std::uint32_t>(lists_.size());
  }
  auto &list = lists_[cell.more - 1];
  auto free = std::find_if(list.begin(), list.end(),
                           [](const Record &slot) { return !slot.bytes; });
  if (free == list.end())
    list.push_back(record);
  else
    *free = record;
}

std::vector<std::pair<std::uint64_t, Cell *>> Shadow::pages() {
  std::vector<std::pair<std::uint64_t, Cell *>> result;
  for (auto &[page, cells] : pages_)
    result.emplace_back(page * kPageCells, cells.get());
  std::sort(result.begin(), result.end());
  return result;
}

std::size_t Shadow::bytes() const {
  std::size_t total = pages_.size() * kPageCells * sizeof(Cell);
  for (const auto &list : lists_)
    total += list.capacity() * sizeof(Record);
  return total;
}

} // namespace kiln::sim
