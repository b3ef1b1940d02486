// MatrixAccess: bounds and cells of operands.
#include "sim/units/matrix/MatrixAccess.h"
#include "support/Error.h"

namespace kiln::sim {

void checkBounds(Warp &warp, const Op &op, const Cta &cta,
                 const OperandView &view) {
  std::size_t bytes = cta.shared.size();
  if (view.lastByte() <= bytes + kFirstSharedAddress &&
      view.start >= kFirstSharedAddress)
    return;
  warp.machine().findings().fault(
      FindingId::outOfBounds, warp, op, warp.live(),
      fmt::format("operand {} reaches from shared address {} to {}; the CTA "
                  "has {} bytes from address {} on",
                  view.isA ? "A" : "B", view.start, view.lastByte(), bytes,
                  kFirstSharedAddress));
}

/// Call `body(offset)` for every 16 bytes of the first rows of an operand that
/// lie in shared memory.
template <typename Body>
static void forEachChunk(const Cta &cta, const OperandView &view, int rows,
                         Body &&body) {
  int perChunk = 16 / view.elementBytes;
  int rowStep = view.isKMajor ? 1 : perChunk;
  int columnStep = view.isKMajor ? perChunk : 1;
  for (int row = 0; row < rows; row += rowStep)
    for (int k = 0; k < view.k; k += columnStep) {
      std::uint32_t offset = view.address(row, k) - kFirstSharedAddress;
      if (offset < cta.shared.size())
        body(offset);
    }
}

/// Eight rows lie as the eight before them do, a number of pages further.
static constexpr int kRowsAlike = 8;

/// How many pages further; nothing where they do not, or are not all there.
static std::optional<std::uint64_t> pagesPerRows(const Cta &cta,
                                                 const OperandView &view) {
  constexpr std::uint64_t kPage = Shadow::kPageBytes;
  auto groups = static_cast<std::uint64_t>(view.rows / kRowsAlike);
  bool isAlike = view.isKMajor && !view.hasWideAtoms && groups &&
                 view.rows % kRowsAlike == 0 && view.stride % kPage == 0;
  if (!isAlike)
    return std::nullopt;
  // The first eight rows end within two pages of where their columns do.
  std::uint64_t last = std::max(view.start, view.address(0, view.k - 1));
  bool isInside = view.start >= kFirstSharedAddress &&
                  last + (groups - 1) * view.stride + 2 * kPage <=
                      cta.shared.size() + kFirstSharedAddress;
  return isInside ? std::optional(view.stride / kPage) : std::nullopt;
}

namespace {
/// Cells of several operands, each page once.
class CellList {
public:
  void add(std::uint64_t page, CellSet cells) {
    if (last_ == places.size() || places[last_].page != page) {
      last_ = 0;
      while (last_ < places.size() && places[last_].page != page)
        ++last_;
      if (last_ == places.size())
        places.push_back({page, 0});
    }
    places[last_].cells |= cells;
  }

  std::vector<PageCells> places;

private:
  std::size_t last_ = 0; // rows follow each other
};
} // namespace

static void addCells(const Cta &cta, const OperandView &view, int rows,
                     CellList &list) {
  forEachChunk(cta, view, rows, [&](std::uint32_t offset) {
    std::uint32_t cell = offset / Shadow::kCellBytes;
    list.add(cell / Shadow::kPageCells, CellSet(1)
                                            << cell % Shadow::kPageCells);
  });
}

std::vector<PageCells> cellsOf(const Cta &cta,
                               const std::vector<OperandView> &views) {
  CellList list;
  for (const OperandView &view : views) {
    std::optional<std::uint64_t> further = pagesPerRows(cta, view);
    if (!further) {
      addCells(cta, view, view.rows, list);
      continue;
    }
    CellList first;
    addCells(cta, view, kRowsAlike, first);
    for (int row = 0; row < view.rows; row += kRowsAlike)
      for (const PageCells &place : first.places)
        list.add(place.page +
                     static_cast<std::uint64_t>(row / kRowsAlike) * *further,
                 place.cells);
  }
  return list.places;
}

void tellSwizzles(Warp &warp, const Op &op, Cta &cta,
                  const std::vector<OperandView> &views) {
  for (const OperandView &view : views)
    warp.watchers().tell(OperandRead{warp, op, cta, view.start,
                                     view.address(0, 0) - kFirstSharedAddress,
                                     view.swizzleBytes, view.isA});
}

std::uint32_t originOf(Warp &warp, const Op &op, const Cta &cta,
                       const OperandView &view, int row) {
  const ValidBits &valid = cta.sharedValid;
  auto bytes = static_cast<std::size_t>(view.elementBytes);
  std::uint32_t address = view.address(row, 0);
  for (int k = 0; k < view.k; ++k)
    if (std::uint32_t at = view.address(row, k);
        !valid.all(at - kFirstSharedAddress, bytes)) {
      address = at;
      break;
    }
  if (std::uint32_t known = valid.origin(address - kFirstSharedAddress, bytes))
    return known;
  return warp.cta().cluster().noteOrigin(op, [&] {
    return fmt::format("{} of operand {}, which nobody wrote",
                       warp.machine().findings().describeShared(address),
                       view.isA ? "A" : "B");
  });
}

} // namespace kiln::sim
