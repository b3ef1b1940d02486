// MatrixAccess: bounds, cells and swizzles of operands.
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

/// Call `body(offset)` for every 16 bytes of operands that lie in shared
/// memory.
template <typename Body>
static void forEachChunk(const Cta &cta, const std::vector<OperandView> &views,
                         Body &&body) {
  for (const OperandView &view : views) {
    int perChunk = 16 / view.elementBytes;
    int rowStep = view.isKMajor ? 1 : perChunk;
    int columnStep = view.isKMajor ? perChunk : 1;
    for (int row = 0; row < view.rows; row += rowStep)
      for (int k = 0; k < view.k; k += columnStep) {
        std::uint32_t offset = view.address(row, k) - kFirstSharedAddress;
        if (offset < cta.shared.size())
          body(offset);
      }
  }
}

std::vector<PageCells> cellsOf(const Cta &cta,
                               const std::vector<OperandView> &views) {
  std::vector<PageCells> places;
  std::size_t last = 0; // rows follow each other
  forEachChunk(cta, views, [&](std::uint32_t offset) {
    std::uint32_t cell = offset / Shadow::kCellBytes;
    std::uint64_t page = cell / Shadow::kPageCells;
    if (last == places.size() || places[last].page != page) {
      last = 0;
      while (last < places.size() && places[last].page != page)
        ++last;
      if (last == places.size())
        places.push_back({page, 0});
    }
    places[last].cells |= CellSet(1) << cell % Shadow::kPageCells;
  });
  return places;
}

void checkSwizzle(Warp &warp, const Op &op, Cta &cta,
                  const std::vector<OperandView> &views, FindingId id) {
  for (const OperandView &view : views) {
    std::uint32_t offset = view.address(0, 0) - kFirstSharedAddress;
    if (offset >= cta.shared.size() || cta.shadow.swizzles.empty())
      continue;
    auto check = [&](const Record &record) {
      auto written = cta.shadow.swizzles.find(record.op);
      if (!record.isWrite() || written == cta.shadow.swizzles.end() ||
          written->second == view.swizzleBytes)
        return;
      warp.machine().findings().report(
          id, warp, op, warp.live(),
          fmt::format(
              "operand {} is read in swizzle {} and was written in "
              "swizzle {} at {}",
              view.isA ? "A" : "B", view.swizzleBytes, written->second,
              warp.machine().findings().placeOf(warp.code().ops[record.op])),
          {"shared", view.start});
    };
    cta.shadow.cells.peek(offset / Shadow::kCellBytes, check);
  }
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
