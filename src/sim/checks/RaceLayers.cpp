// RaceLayers: accesses of a warp's lanes that are alike, against the layers of a
// page.
#include "sim/checks/RaceDetector.h"
#include "sim/machine/Machine.h"
#include "support/limits/Reserve.h"

#include <algorithm>

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

bool RaceDetector::touchLayer(const Access &access, ShadowedMemory &memory,
                              std::uint64_t number, const Layer &touched) {
  const Record &later = touched.record;
  bool isWrite = later.isWrite();
  Shadow::Page &page = memory.cells.page(number);
  if (page.isSplit || page.layers.size() >= Shadow::kMaxLayers ||
      later.isStrong() || (early_ && &memory == &global_) ||
      (isWrite && memory.hasBarrier(number, touched.cells)))
    return false;
  Access whole = access;
  whole.record = touched.whole();
  whole.issuers = later.lanes;
  auto isMet = [&](const Layer &layer) {
    return (layer.cells & touched.cells) &&
           (layer.record.bytes & later.bytes) &&
           !isSameInstruction(whole, layer.record);
  };
  bool hasMet = false;
  for (Layer &layer : page.layers) {
    if (!isMet(layer))
      continue;
    hasMet = true;
    if ((isWrite || layer.record.isWrite()) &&
        !isOrderedAfter(whole, touched, layer))
      return false;
  }
  std::vector<Layer> &layers = page.layers;
  std::size_t count = hasMet ? layers.size() : 0;
  for (std::size_t i = 0; i < count; ++i) {
    Layer &layer = layers[i];
    if (!isMet(layer))
      continue;
    bool isAlike = layer.record.component == later.component &&
                   layer.record.flags == later.flags &&
                   (later.flags & Record::kSplit
                        ? touched.isSplitLike(layer)
                        : (layer.record.lanes & ~later.lanes) == 0);
    if (!isWrite && (layer.record.isWrite() || !isAlike))
      continue;
    // What this access takes the place of; other bytes of its cells stay.
    CellSet taken = layer.cells & touched.cells;
    layer.cells &= ~taken;
    auto left = static_cast<std::uint16_t>(layer.record.bytes & ~later.bytes);
    if (left) {
      Layer rest = layer;
      rest.record.bytes = left;
      rest.cells = taken;
      layers.push_back(rest);
    }
  }
  if (hasMet)
    std::erase_if(layers, [](const Layer &layer) { return !layer.cells; });
  // Accesses by the same lanes since they last handed something over.
  std::uint32_t edge = access.warp->clock.lastEdge;
  for (Layer &layer : layers) {
    Record &slot = layer.record;
    bool isSame = slot.component == later.component && slot.op == later.op &&
                  slot.flags == later.flags && slot.lanes == later.lanes &&
                  (slot.time == later.time ||
                   (slot.time > edge && !(slot.flags & Record::kSplit)));
    if (!isSame || (slot.flags & Record::kSplit && !touched.isSplitLike(layer)))
      continue;
    if (slot.bytes != later.bytes && layer.cells != touched.cells)
      continue;
    slot.bytes |= later.bytes;
    slot.time = later.time;
    layer.cells |= touched.cells;
    layer.orderedBy = ~Component(0); // nobody knows of this one yet
    return true;
  }
  if (layers.empty())
    reserveBounded(layers, 8);
  layers.push_back(touched);
  return true;
}

} // namespace kiln::sim
