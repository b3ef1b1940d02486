// Shadow: cells by the page, and what does not fit into one.
#include "sim/clocks/Shadow.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

namespace kiln::sim {

LaneMask Record::lanesInTurn(std::uint16_t overlap) const {
  int base = flags >> kBaseShift & 15, size = flags >> kSizeShift & 7;
  int first = firstLane(lanes);
  auto laneOf = [&](int byte) { return first + ((byte - base) >> size); };
  LaneMask touched = 0;
  for (unsigned left = overlap; left;) {
    // A run of bytes is a run of lanes.
    int begin = std::countr_zero(left);
    int end = begin + std::countr_one(left >> begin);
    touched |=
        (LaneMask(2) << laneOf(end - 1)) - (LaneMask(1) << laneOf(begin));
    left &= ~0u << end;
  }
  return touched;
}

Record Layer::recordOf(std::size_t cell) const {
  Record its = record;
  if (!(record.flags & Record::kSplit))
    return its;
  constexpr auto kCell = static_cast<std::uint32_t>(Shadow::kCellBytes);
  constexpr unsigned kLayout = Record::kSplit | 15u << Record::kBaseShift |
                               7u << Record::kSizeShift;
  std::uint32_t size = laneBytes();
  auto begin = static_cast<std::uint32_t>(cell) * kCell +
               static_cast<std::uint32_t>(std::countr_zero(record.bytes));
  auto end = static_cast<std::uint32_t>(cell) * kCell +
             static_cast<std::uint32_t>(std::bit_width(record.bytes));
  std::uint32_t first = (begin - start) / size, last = (end - 1 - start) / size;
  int lane = firstLane(record.lanes);
  its.lanes = (LaneMask(2) << (lane + static_cast<int>(last))) -
              (LaneMask(1) << (lane + static_cast<int>(first)));
  its.flags &= static_cast<std::uint16_t>(~kLayout);
  if (first != last)
    its.flags |= static_cast<std::uint16_t>(
        (record.flags & (Record::kSplit | 7u << Record::kSizeShift)) |
        (begin % kCell << Record::kBaseShift));
  return its;
}

bool Layer::isSplitLike(const Layer &other) const {
  constexpr unsigned kLayout = Record::kSplit | 7u << Record::kSizeShift;
  if (!(record.flags & Record::kSplit) ||
      ((record.flags ^ other.record.flags) & kLayout))
    return false;
  // Where lane 0 would begin.
  auto origin = [](const Layer &layer) {
    return static_cast<std::int64_t>(layer.start) -
           std::int64_t(firstLane(layer.record.lanes)) * layer.laneBytes();
  };
  return origin(*this) == origin(other);
}

bool Layer::join(const Layer &later, std::uint32_t edge) {
  if (!isAlike(later))
    return false;
  bool isSamePlace = cells == later.cells && record.bytes == later.record.bytes;
  bool isJoined = record.time == later.record.time ||
                  (record.time > edge && !(record.flags & Record::kSplit));
  if (!isSamePlace && !(isJoined && (cells == later.cells ||
                                     record.bytes == later.record.bytes)))
    return false;
  record.bytes |= later.record.bytes;
  record.time = std::max(record.time, later.record.time);
  cells |= later.cells;
  orderedBy = ~Component(0); // nobody knows of this one yet
  return true;
}

void Reads::add(const Layer &read, std::uint32_t edge) {
  std::uint16_t &place = placeOf(read.record);
  if (place && list_[place - 1u].join(read, edge))
    return;
  if (list_.size() >= limit_) {
    tidy();
    limit_ = std::max<std::size_t>(64, 2 * list_.size());
  }
  list_.push_back(read);
  placeOf(read.record) = static_cast<std::uint16_t>(list_.size());
}

void Reads::tidy() {
  std::vector<std::uint16_t> order(list_.size());
  std::iota(order.begin(), order.end(), std::uint16_t(0));
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) {
    return list_[a].record.component < list_[b].record.component;
  });
  for (std::size_t i = 1; i < order.size(); ++i) {
    const Layer &later = list_[order[i]];
    for (std::size_t j = i; j-- > 0;) {
      Layer &earlier = list_[order[j]];
      if (earlier.record.component != later.record.component)
        break;
      if ((earlier.record.bytes & ~later.record.bytes) == 0 &&
          (earlier.cells & later.cells) && earlier.isReplacedBy(later))
        earlier.cells &= ~later.cells;
    }
  }
  eraseEmpty();
}

void Reads::eraseEmpty() {
  if (std::erase_if(list_, [](const Layer &read) { return !read.cells; }))
    last_ = {};
}

void Crowd::tidy() {
  size = 0;
  for (auto member = members.begin(); member != members.end();) {
    auto &records = member->second;
    std::erase_if(records, [](const Record &record) { return !record.bytes; });
    size += records.size();
    member = records.empty() ? members.erase(member) : std::next(member);
  }
  // Looking costs as much as there are: so it is done when there are twice as
  // many.
  limit = 2 * size + 16;
}

Shadow::Page *Shadow::find(std::uint64_t number) {
  if (number < kNearPages) {
    if (number >= near_.size()) {
      near_.resize(std::bit_ceil(static_cast<std::size_t>(number) + 1));
      recent_ = {};
    }
    return &near_[number];
  }
  std::uint32_t &known = farNumbers_[number];
  if (!known) {
    far_.emplace_back(number, Page{});
    known = static_cast<std::uint32_t>(far_.size());
  }
  return &far_[known - 1].second;
}

void Shadow::split(Page &page) {
  if (page.cells) {
    std::fill_n(page.cells.get(), kPageCells, Cell{});
  } else {
    share_.take(kPageCells * sizeof(Cell), "what the checks know of memory");
    page.cells = std::make_unique<Cell[]>(kPageCells);
  }
  page.isSplit = true;
  if (page.reads)
    page.reads->tidy();
  page.forEachLayer([&](const Layer &layer) {
    for (CellSet left = layer.cells; left; left &= left - 1) {
      auto cell = static_cast<std::size_t>(std::countr_zero(left));
      add(page.cells[cell], layer.recordOf(cell));
    }
  });
  page.layers = {};
  page.reads = nullptr;
}

void Shadow::merge(Page &page, const Record &record) {
  for (std::size_t i = 0; i < kPageCells; ++i) {
    const Cell &cell = page.cells[i];
    int used = 0, same = 0;
    for (const Record &slot : cell.records) {
      used += slot.bytes != 0;
      same += slot.bytes == 0xffff && slot.isSameAccess(record);
    }
    if (cell.more || used != 1 || same != 1)
      return;
  }
  page.isSplit = false;
  Record whole = record;
  whole.bytes = 0xffff;
  page.layers.push_back({whole, ~CellSet(0)});
}

void Shadow::forget(std::uint64_t begin, std::size_t bytes) {
  for (std::uint64_t at = begin; at < begin + bytes; at += kPageBytes) {
    Page &its = page(at / kPageBytes);
    its.layers.clear();
    its.reads = nullptr;
    its.isSplit = false;
    if (its.cells)
      std::fill_n(its.cells.get(), kPageCells, Cell{});
  }
}

std::uint8_t *Shadow::valuesAt(std::uint64_t address) {
  Page &its = page(address / kPageBytes);
  if (!its.values) {
    share_.take(kPageBytes, "what the checks know of memory");
    its.values = std::make_unique_for_overwrite<std::uint8_t[]>(kPageBytes);
  }
  return &its.values[address % kPageBytes];
}

Shadow::More &Shadow::more(Cell &cell) {
  if (!cell.more) {
    lists_.emplace_back();
    cell.more = static_cast<std::uint32_t>(lists_.size());
  }
  return lists_[cell.more - 1];
}

void Shadow::add(Cell &cell, const Record &record) {
  for (Record &slot : cell.records)
    if (!slot.bytes) {
      slot = record;
      return;
    }
  auto &list = more(cell).records;
  auto free = std::find_if(list.begin(), list.end(),
                           [](const Record &slot) { return !slot.bytes; });
  if (free == list.end())
    list.push_back(record);
  else
    *free = record;
}

std::vector<std::pair<std::uint64_t, Shadow::Page *>> Shadow::pages() {
  std::vector<std::pair<std::uint64_t, Page *>> result;
  for (std::size_t number = 0; number < near_.size(); ++number)
    result.emplace_back(number * kPageCells, &near_[number]);
  for (auto &[number, page] : far_)
    result.emplace_back(number * kPageCells, &page);
  std::erase_if(result, [](const auto &entry) {
    return entry.second->isUntouched();
  });
  std::sort(result.begin(), result.end());
  return result;
}

std::size_t Shadow::bytes() const {
  std::size_t total = 0;
  auto count = [&](const Page &page) {
    total += page.layers.capacity() * sizeof(Layer);
    if (page.reads)
      total += sizeof(Reads) + page.reads->bytes();
    if (page.cells)
      total += kPageCells * sizeof(Cell);
    if (page.values)
      total += kPageBytes;
  };
  for (const Page &page : near_)
    count(page);
  for (const auto &[number, page] : far_)
    count(page);
  for (const More &list : lists_)
    total += (list.records.capacity() + list.crowd.size) * sizeof(Record);
  return total;
}

} // namespace kiln::sim
