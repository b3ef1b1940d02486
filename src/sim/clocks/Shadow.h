// Shadow: who has touched the bytes of a memory last.
//
// A cell stands for 16 bytes and holds the accesses that a later one may still
// collide with: mostly one write, or a few reads. Each remembers which of the
// 16 bytes it touched, so that threads that share a cell and no byte do not
// meet. Cells are made a page at a time, where memory is touched at all; a cell
// with more than three accesses keeps the others in a list of its own, and
// strong writes among them by who made them.
//
// Copies and products touch many whole cells alike, and so do the lanes of a
// warp, each its own bytes in turn or all the same ones. A page that nothing
// else has touched is kept as a few layers, each one access and the set of its
// cells, so that a tile costs as much as a page. What cannot be said of whole
// layers splits the page into cells.
#pragma once

#include "kiln/run/host_memory.h"
#include "sim/clocks/LaneClocks.h"
#include "support/AddressTable.h"
#include "support/limits/Recycled.h"

#include <array>
#include <deque>
#include <map>
#include <memory>

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
  static constexpr unsigned kKept = 1u << 13;

  bool isWrite() const { return flags & kWrite; }
  bool isAsync() const { return flags & kAsync; } ///< through the async proxy
  bool isStrong() const { return flags & kStrong; }
  /// Whether the page has the value that was written (Page::values).
  bool isKept() const { return flags & kKept; }
  Scope scope() const { return static_cast<Scope>(flags >> kScopeShift & 3); }
  /// Whether they are of one access, whatever bytes of it.
  bool isSameAccess(const Record &other) const {
    return time == other.time && lanes == other.lanes &&
           component == other.component && op == other.op &&
           flags == other.flags;
  }
  /// Lanes that touched some of `overlap`: all of them, unless the lanes took
  /// the bytes in turn, 2^size each from the base on.
  LaneMask lanesOf(std::uint16_t overlap) const {
    return flags & kSplit ? lanesInTurn(overlap) : lanes;
  }
  /// Whether the lanes took the bytes in turn, the same lane the same byte.
  bool isSplitLike(const Record &other) const {
    constexpr unsigned kLayout = kSplit | 15u << kBaseShift | 7u << kSizeShift;
    return (flags & kSplit) && ((flags ^ other.flags) & kLayout) == 0 &&
           lanes == other.lanes;
  }

private:
  LaneMask lanesInTurn(std::uint16_t overlap) const;
};

struct Cell {
  static constexpr int kSlots = 3;
  Record records[kSlots];
  std::uint32_t more; ///< which list holds further records; 0: none
};
static_assert(sizeof(Cell) == 64, "four bytes of shadow per byte of memory");

/// Strong writes to one cell by many threads: counters, the bins of a
/// histogram. They do not race with each other where their scopes take in each
/// other, so one more is not compared with all of them; it takes the place of
/// an earlier one by its own warp.
struct Crowd {
  std::map<Component, std::vector<Record>> members;
  std::size_t size = 0;     ///< records
  std::size_t limit = 0;    ///< from here on, those that are over are dropped
  Scope reach = Scope::gpu; ///< the least scope of them
  std::uint32_t cta = 0;    ///< of the last one
  bool isOfOneCta = true;

  /// One more comes, of that scope and from that CTA.
  void note(Scope scope, std::uint32_t itsCta) {
    isOfOneCta = members.empty() || (isOfOneCta && cta == itsCta);
    reach = members.empty() ? scope : std::min(reach, scope);
    cta = itsCta;
  }
  /// Forget the records without bytes.
  void tidy();
};

/// Cells of a page, one bit each.
using CellSet = std::uint64_t;

/// Some cells of one page.
struct PageCells {
  std::uint64_t page;
  CellSet cells;
};

/// One access to some cells of a page: to the same bytes of each.
struct Layer {
  Record record;
  CellSet cells;
  /// Where its lanes take the bytes in turn (Record::kSplit; here it says
  /// nothing of a base): the first byte of the first lane in the page.
  std::uint32_t start = 0;
  /// A warp that is ordered after it, by what its lanes of `orderedLanes` have
  /// known since they last parted.
  Component orderedBy = ~Component(0);
  std::uint32_t orderedSince = 0;
  LaneMask orderedLanes = 0;

  /// The access as one of these cells has it.
  Record recordOf(std::size_t cell) const;
  /// The access as if each of its lanes touched every byte.
  Record whole() const {
    Record record = this->record;
    record.flags &= static_cast<std::uint16_t>(~Record::kSplit);
    return record;
  }
  /// Whether both touch some byte.
  bool meets(const Layer &other) const {
    return (cells & other.cells) && (record.bytes & other.record.bytes);
  }
  /// Whether every byte that both touch is of the same lane in both.
  bool isSplitLike(const Layer &other) const;
  /// Whether they differ in nothing but when and what of the page they touch.
  bool isAlike(const Layer &other) const {
    return record.component == other.record.component &&
           record.op == other.record.op &&
           record.flags == other.record.flags &&
           record.lanes == other.record.lanes &&
           (!(record.flags & Record::kSplit) || isSplitLike(other));
  }
  /// Whether a later access makes this one needless where they touch the same
  /// bytes: it is of one kind, and by the same lanes.
  bool isReplacedBy(const Layer &later) const {
    return record.component == later.record.component &&
           record.flags == later.record.flags &&
           (record.flags & Record::kSplit
                ? isSplitLike(later)
                : (record.lanes & ~later.record.lanes) == 0);
  }
  /// Become one with a later access that is alike, where that can be said in one
  /// layer. `edge`: when the warp last handed something over; since then nobody
  /// can have learnt of this one and not of the other.
  bool join(const Layer &later, std::uint32_t edge);

private:
  std::uint32_t laneBytes() const {
    return 1u << (record.flags >> Record::kSizeShift & 7);
  }
};

using Layers = std::vector<Layer, RecycledAllocator<Layer>>;

/// What threads have read of a page, which matters when something is written.
class Reads : public Recycled {
public:
  /// One more; `edge`: when its warp last handed something over.
  void add(const Layer &read, std::uint32_t edge);
  /// Forget what a later read of the same lanes has taken the place of.
  void tidy();
  Layers &list() { return list_; }
  const Layers &list() const { return list_; }
  /// Some of the list have lost cells.
  void eraseEmpty();
  std::size_t bytes() const { return list_.capacity() * sizeof(Layer); }

private:
  /// Where an instruction of a warp has its last read.
  std::uint16_t &placeOf(const Record &record) {
    return last_[(record.component * 29 + record.op) % last_.size()];
  }

  Layers list_;
  std::size_t limit_ = 64; ///< from here on it is tidied
  /// Numbers in the list, each plus one.
  std::array<std::uint16_t, 128> last_{};
};

/// The cells of one memory.
class Shadow {
public:
  static constexpr std::size_t kCellBytes = 16, kPageCells = 64,
                               kPageBytes = kPageCells * kCellBytes;
  /// A page with more layers is cheaper as cells.
  static constexpr std::size_t kMaxLayers = 32, kMaxReads = 4096;

  struct Page {
    // While it is not split, each oldest first.
    Layers layers;
    /// Weak reads of threads; null: none. Those that a later one of the same
    /// lanes has taken the place of may be among them (Reads::tidy).
    std::unique_ptr<Reads> reads;
    std::unique_ptr<Cell[]> cells;
    /// What threads have written last in each byte, where that is kept.
    std::unique_ptr<std::uint8_t[]> values;
    bool isSplit = false;

    bool isUntouched() const {
      return !isSplit && layers.empty() && !hasReads();
    }
    template <typename Body> void forEachLayer(Body &&body) const {
      for (const Layer &layer : layers)
        body(layer);
      if (reads)
        for (const Layer &read : reads->list())
          body(read);
    }
    bool hasReads() const { return reads && !reads->list().empty(); }
  };

  Page &page(std::uint64_t number) {
    Recent &recent = recent_[number % recent_.size()];
    if (number != recent.number)
      recent = {number, find(number)};
    return *recent.page;
  }
  /// A cell by its index; its page is split.
  Cell &cell(std::uint64_t index) {
    Page &its = page(index / kPageCells);
    if (!its.isSplit)
      split(its);
    return its.cells[index % kPageCells];
  }

  /// Call `body(record)` for every record of a cell.
  template <typename Body> void forEach(Cell &cell, Body &&body) {
    forEachAlone(cell, body);
    if (cell.more)
      for (auto &[component, records] : lists_[cell.more - 1].crowd.members)
        forEachOf(records, body);
  }
  /// The same without its crowd.
  template <typename Body> void forEachAlone(Cell &cell, Body &&body) {
    forEachOf(cell.records, body);
    if (cell.more)
      forEachOf(lists_[cell.more - 1].records, body);
  }
  /// The same by its index, which leaves the page as it is.
  template <typename Body> void peek(std::uint64_t index, Body &&body) {
    Page &its = page(index / kPageCells);
    if (its.isSplit)
      return forEach(its.cells[index % kPageCells], body);
    its.forEachLayer([&](const Layer &layer) {
      if (layer.cells >> index % kPageCells & 1)
        body(layer.recordOf(index % kPageCells));
    });
  }
  void add(Cell &cell, const Record &record);
  /// Where the values of writes are kept, from the byte at an address to the end
  /// of its page.
  std::uint8_t *valuesAt(std::uint64_t address);
  /// The crowd of a cell; null: it has none.
  Crowd *findCrowd(Cell &cell) {
    return cell.more ? &lists_[cell.more - 1].crowd : nullptr;
  }
  Crowd &crowd(Cell &cell) { return more(cell).crowd; }
  /// Make one layer of a split page all cells of which hold `record` and
  /// nothing else.
  static void merge(Page &page, const Record &record);
  /// Forget all records of some whole pages.
  void forget(std::uint64_t begin, std::size_t bytes);

  /// Pages in order of their addresses: the index of the first cell, and the
  /// page.
  std::vector<std::pair<std::uint64_t, Page *>> pages();
  /// Bytes of all cells, lists and layers.
  std::size_t bytes() const;

private:
  /// Pages below have their place in a table: those of shared memory.
  static constexpr std::uint64_t kNearPages = 256;

  /// What does not fit into a cell.
  struct More {
    std::vector<Record> records;
    Crowd crowd;
  };

  Page *find(std::uint64_t number);
  void split(Page &page);
  More &more(Cell &cell);
  template <typename Records, typename Body>
  static void forEachOf(Records &records, Body &&body) {
    for (Record &record : records)
      if (record.bytes)
        body(record);
  }

  std::vector<Page> near_;
  /// Numbers in the list, each plus one.
  AddressTable<std::uint32_t> farNumbers_;
  std::deque<std::pair<std::uint64_t, Page>> far_;
  std::deque<More> lists_;
  HostMemory share_; ///< of the host's memory, for the cells
  struct Recent {
    std::uint64_t number = ~std::uint64_t(0);
    Page *page = nullptr;
  };
  std::array<Recent, 16> recent_{};
};

} // namespace kiln::sim
