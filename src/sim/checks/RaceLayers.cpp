// RaceLayers: accesses of a warp's lanes that are alike, against the layers of a
// page.
#include "sim/checks/RaceDetector.h"
#include "sim/machine/Machine.h"
#include "support/limits/Reserve.h"

#include <algorithm>
#include <array>

namespace kiln::sim {

bool RaceDetector::isOrderedAfter(const Access &access, const Layer &touched,
                                  Layer &earlier) const {
  const WarpClock &clock = access.warp->clock;
  const Record &record = earlier.record;
  bool isOwn = record.component == clock.lanes;
  if (isOwn && touched.isSplitLike(earlier))
    return true; // in program order
  bool isKnown = !isOwn && earlier.orderedBy == clock.lanes &&
                 earlier.orderedSince == clock.lastParting &&
                 (touched.record.lanes & ~earlier.orderedLanes) == 0;
  if (isKnown)
    return true;
  // Where all lanes are ordered after all others, each one is.
  if (judge(access, earlier.whole(), 0xffff) != Verdict::ordered)
    return false;
  if (!isOwn) {
    earlier.orderedBy = clock.lanes;
    earlier.orderedSince = clock.lastParting;
    earlier.orderedLanes = touched.record.lanes;
  }
  return true;
}

bool RaceDetector::isOrderedAfterReads(const Access &access,
                                       const Layer &touched,
                                       Layers &reads) const {
  // Who knows of one knows of those before it. The last ones come first.
  constexpr std::size_t kKnown = 16;
  std::array<const Record *, kKnown> known{};
  for (std::size_t i = reads.size(); i-- > 0;) {
    Layer &read = reads[i];
    if (!touched.meets(read) || isSameInstruction(access, read.record))
      continue;
    const Record *&later = known[read.record.component % kKnown];
    bool isKnown = later && later->component == read.record.component &&
                   later->time >= read.record.time &&
                   (read.record.lanes & ~later->lanes) == 0;
    if (isKnown)
      continue;
    if (!isOrderedAfter(access, touched, read))
      return false;
    if (read.record.component != access.warp->clock.lanes)
      later = &read.record;
  }
  return true;
}

/// Take what `touched` touches out of layers; other bytes of the cells stay.
static void takeOut(Layers &layers, const Layer &touched) {
  std::size_t count = layers.size();
  for (std::size_t i = 0; i < count; ++i) {
    Layer &layer = layers[i];
    if (!touched.meets(layer) || layer.record.isSameAccess(touched.record))
      continue;
    CellSet taken = layer.cells & touched.cells;
    layer.cells &= ~taken;
    auto left =
        static_cast<std::uint16_t>(layer.record.bytes & ~touched.record.bytes);
    if (!left)
      continue;
    Layer rest = layer;
    rest.record.bytes = left;
    rest.cells = taken;
    layers.push_back(rest);
  }
}

bool RaceDetector::touchLayer(const Access &access, ShadowedMemory &memory,
                              std::uint64_t number, const Layer &touched) {
  const Record &later = touched.record;
  Shadow::Page &page = memory.cells.page(number);
  bool isRead = !later.isWrite();
  if (isByCell || page.isSplit || page.layers.size() >= Shadow::kMaxLayers ||
      (page.reads && page.reads->list().size() >= Shadow::kMaxReads) ||
      later.isStrong() ||
      (early_ && &memory == &global_) ||
      (!isRead && memory.hasBarrier(number, touched.cells)))
    return false;
  Access whole = access;
  whole.record = touched.whole();
  whole.issuers = later.lanes;
  for (Layer &layer : page.layers) {
    bool isMet = touched.meets(layer) &&
                 !isSameInstruction(whole, layer.record) &&
                 (!isRead || layer.record.isWrite());
    if (!isMet)
      continue;
    if (!isOrderedAfter(whole, touched, layer))
      return false;
  }
  std::uint32_t edge = access.warp->clock.lastEdge;
  if (isRead) {
    if (!page.reads)
      page.reads = std::make_unique<Reads>();
    page.reads->add(touched, edge);
    return true;
  }
  if (page.hasReads() &&
      !isOrderedAfterReads(whole, touched, page.reads->list()))
    return false;
  putLayer(page, touched, edge);
  return true;
}

void RaceDetector::putLayer(Shadow::Page &page, const Layer &touched,
                            std::uint32_t edge) {
  if (page.hasReads()) {
    takeOut(page.reads->list(), touched);
    page.reads->eraseEmpty();
  }
  bool hasMet = std::any_of(
      page.layers.begin(), page.layers.end(), [&](const Layer &layer) {
        return touched.meets(layer) &&
               !layer.record.isSameAccess(touched.record);
      });
  if (hasMet) {
    takeOut(page.layers, touched);
    std::erase_if(page.layers,
                  [](const Layer &layer) { return !layer.cells; });
  }
  for (Layer &layer : page.layers)
    if (layer.join(touched, edge))
      return;
  if (page.layers.empty())
    reserveBounded(page.layers, 8);
  page.layers.push_back(touched);
}

} // namespace kiln::sim
