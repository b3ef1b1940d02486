// Shadow: who has touched the bytes of a memory last.
//
// A cell stands for 16 bytes and holds the accesses that a later one may still
// collide with: mostly one write, or a few reads. Each remembers which of the
// 16 bytes it touched, so that threads that share a cell and no byte do not
// meet. Cells are made a page at a time, where memory is touched at all; a cell
// with more than three accesses keeps the others in a list of its own.
#pragma once

#include "sim/OrderStrand.h"

#include <unordered_map>

namespace kiln::sim {

/// One access to some bytes of a cell.
struct Record {
  std::uint32_t time;  ///< of its component
  LaneMask lanes;      ///< of its component
  Component component; ///< who will have done it
  std::uint32_t op;    ///< index of the instruction
  std::uint16_t bytes; ///< one bit per byte of the cell; 0: no record
  std::uint16_t flags;

  // What `flags` holds.
  static constexpr unsigned kWrite = 1, kAsync = 2, kStrong = 4, kSplit = 8;
  static constexpr int kScopeShift = 4, kBaseShift = 6, kSizeShift = 10;

  bool isWrite() const { return flags & kWrite; }
  bool isAsync() const { return flags & kAsync; } ///< through the async proxy
  bool isStrong() const { return flags & kStrong; }
  Scope scope() const { return static_cast<Scope>(flags >> kScopeShift & 3); }
  /// Lanes that touched some of `overlap`: all of them, unless the lanes took
  /// the bytes in turn, 2^size each from the base on.
  LaneMask lanesOf(std::uint16_t overlap) const;
};

struct Cell {
  static constexpr int kSlots = 3;
  Record records[kSlots];
  std::uint32_t more; ///< which list holds further records; 0: none
};
static_assert(sizeof(Cell) == 64, "four bytes of shadow per byte of memory");

/// The cells of one memory.
class Shadow {
public:
  static constexpr std::size_t kCellBytes = 16, kPageCells = 256;

  Cell &cell(std::uint64_t index) {
    std::uint64_t page = index / kPageCells;
    if (page != lastPage_) {
      last_ = find(page);
      lastPage_ = page;
    }
    return last_[index % kPageCells];
  }

  /// Call `body(record)` for every record of a cell.
  template <typename Body> void forEach(Cell &cell, Body &&body) {
    for (Record &record : cell.records)
      if (record.bytes)
        body(record);
    if (cell.more)
      for (Record &record : lists_[cell.more - 1])
        if (record.bytes)
          body(record);
  }
  void add(Cell &cell, const Record &record);

  /// Pages in order of their addresses: the first cell and its index.
  std::vector<std::pair<std::uint64_t, Cell *>> pages();
  /// Bytes of all cells and lists.
  std::size_t bytes() const;

private:
  Cell *find(std::uint64_t page);

  std::unordered_map<std::uint64_t, std::unique_ptr<Cell[]>> pages_;
  std::vector<std::vector<Record>> lists_;
  std::uint64_t lastPage_ = ~std::uint64_t(0);
  Cell *last_ = nullptr;
};

} // namespace kiln::sim
