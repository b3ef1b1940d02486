// RaceDetector: accesses against the shadow of their bytes.
#include "sim/checks/RaceDetector.h"
#include "sim/machine/Machine.h"
#include "support/limits/Reserve.h"

#include <algorithm>
#include <utility>

namespace kiln::sim {

RaceDetector::RaceDetector(Machine &machine, bool keepsValues)
    : machine_(machine), keepsValues_(keepsValues),
      told_{{}, FindingQuota(machine.config().max_findings)} {
  if (machine.gridControl().isDependent())
    early_ = std::make_unique<EarlyAccesses>();
}

Component RaceDetector::add(std::uint32_t cluster, const Agent &agent) {
  // Numbers of clusters and components that do not fit share one: less is
  // found then, and nothing that is not so.
  std::uint32_t block = cluster & ((1u << (32 - kBlockShift)) - 1);
  if (!lastAgents_ || lastBlock_ != block) {
    lastAgents_ = &agents_[block];
    lastBlock_ = block;
  }
  std::vector<Agent> &agents = *lastAgents_;
  if (agents.size() < (1u << kBlockShift))
    agents.push_back(agent);
  return block << kBlockShift | static_cast<std::uint32_t>(agents.size() - 1);
}

const Agent &RaceDetector::agent(Component component) const {
  return agents_.at(component >> kBlockShift)
      .at(component & ((1u << kBlockShift) - 1));
}

void RaceDetector::begin(Warp &warp) {
  Cta &cta = warp.cta();
  WarpClock &clock = warp.clock;
  clock.started = warp.live();
  clock.cta = cta.number();
  clock.cluster = cta.cluster().number();
  auto component = [&](Agent::Kind kind) {
    return add(clock.cluster,
               {kind, cta.index(), static_cast<std::uint32_t>(warp.index()),
                clock.cta, clock.cluster});
  };
  clock.lanes = component(Agent::Kind::lanes);
  clock.copies = component(Agent::Kind::copies);
  clock.bulkWrites = component(Agent::Kind::bulkWrites);
  clock.bulkReads = component(Agent::Kind::bulkReads);
}

void RaceDetector::begin(Cta &cta) {
  auto cluster = static_cast<std::uint32_t>(cta.cluster().number());
  constexpr std::size_t kWarpsPerGroup = 4;
  for (std::size_t i = 0;
       i < cta.tensorCores.size() && i * kWarpsPerGroup < cta.warps().size();
       ++i)
    cta.tensorCores[i].component =
        add(cluster, {Agent::Kind::products, cta.index(),
                      static_cast<std::uint32_t>(i), cta.number(), cluster});
}

static std::uint32_t indexOf(const Warp &warp, const Op &op) {
  return static_cast<std::uint32_t>(&op - warp.code().ops.data());
}

Access RaceDetector::plain(Warp &warp, const Op &op, bool isWrite) {
  Access access{.warp = &warp, .op = &op};
  unsigned flags = isWrite ? Record::kWrite : 0;
  if (op.semantics.isStrong)
    flags |= Record::kStrong | unsigned(op.semantics.scope)
                                   << Record::kScopeShift;
  bool isLate = readAt_ != ~std::uint32_t(0);
  access.record = {.time = isLate ? readAt_ : ++warp.clock.now,
                   .lanes = 0,
                   .component = warp.clock.lanes,
                   .op = indexOf(warp, op),
                   .bytes = 0,
                   .flags = static_cast<std::uint16_t>(flags)};
  return access;
}

Access RaceDetector::issued(Warp &warp, const Op &op, int lane, bool isWrite,
                            Component component, std::uint32_t time,
                            bool isAsync) {
  Access access{.warp = &warp, .op = &op, .issuers = LaneMask(1) << lane};
  unsigned flags =
      (isWrite ? Record::kWrite : 0) | (isAsync ? Record::kAsync : 0);
  access.record = {.time = time,
                   .lanes = access.issuers,
                   .component = component,
                   .op = indexOf(warp, op),
                   .bytes = 0,
                   .flags = static_cast<std::uint16_t>(flags)};
  return access;
}

/// Call `body(cell, bytes)` for the cells of a run of bytes.
template <typename Body>
static void forEachCell(std::uint64_t begin, std::size_t bytes, Body &&body) {
  constexpr std::uint64_t kCell = Shadow::kCellBytes;
  std::uint64_t end = begin + bytes;
  for (std::uint64_t cell = begin / kCell; cell * kCell < end; ++cell) {
    unsigned mask = 0xffff;
    if (cell * kCell < begin)
      mask &= 0xffffu << (begin - cell * kCell);
    if (end < (cell + 1) * kCell)
      mask &= 0xffffu >> ((cell + 1) * kCell - end);
    body(cell, static_cast<std::uint16_t>(mask));
  }
}

void RaceDetector::touchShared(Access &access, Cta &owner, std::uint64_t offset,
                               std::size_t bytes) {
  if (access.record.isAsync())
    access.view = View::asyncShared;
  touchRun(access, owner.shadow, offset, bytes);
}

void RaceDetector::touchGlobal(Access &access, std::uint64_t address,
                               std::size_t bytes) {
  if (access.record.isAsync())
    access.view = View::asyncGlobal;
  noteDirect(*access.op, access.record.isWrite(), address, bytes);
  touchRun(access, global_, address, bytes);
}

void RaceDetector::touchCells(Access &access, Cta &owner,
                              std::span<const PageCells> places) {
  access.view = View::asyncShared;
  if (touchAlike(access, owner.shadow, places))
    return;
  for (const auto &[page, cells] : places)
    for (CellSet left = cells; left; left &= left - 1)
      touch(access, owner.shadow,
            page * Shadow::kPageCells +
                static_cast<unsigned>(std::countr_zero(left)),
            0xffff);
}

void RaceDetector::touchRun(Access &access, ShadowedMemory &memory,
                            std::uint64_t begin, std::size_t bytes) {
  constexpr std::uint64_t kPage = Shadow::kPageCells * Shadow::kCellBytes;
  // Shorter runs are threads' own: they leave a page in pieces.
  constexpr std::uint64_t kShortest = 4 * Shadow::kCellBytes;
  for (std::uint64_t end = begin + bytes; begin < end;) {
    std::uint64_t page = begin / kPage;
    std::uint64_t last = std::min(end, (page + 1) * kPage);
    std::uint64_t first = std::exchange(begin, last);
    bool isWhole = (first | last) % Shadow::kCellBytes == 0;
    if (isWhole && last - first >= kShortest) {
      CellSet cells = ~CellSet(0) >> (Shadow::kPageCells -
                                      (last - first) / Shadow::kCellBytes);
      cells <<= first % kPage / Shadow::kCellBytes;
      PageCells place{page, cells};
      if (touchAlike(access, memory, {&place, 1}))
        continue;
    }
    forEachCell(first, last - first,
                [&](std::uint64_t cell, std::uint16_t mask) {
                  touch(access, memory, cell, mask);
                });
    if (last - first == kPage && access.record.isWrite())
      Shadow::merge(memory.cells.page(page), access.record);
  }
}

/// Whether whoever is ordered after `access` is ordered after `earlier` too,
/// because they are of one kind and by the same lanes.
bool RaceDetector::isReplaced(const Access &access, const Record &earlier) {
  return earlier.component == access.record.component &&
         earlier.flags == access.record.flags &&
         (earlier.lanes & ~access.record.lanes) == 0;
}

/// Lanes of one instruction do not race with each other. (The times of
/// mbarriers and products are no instructions.)
bool RaceDetector::isSameInstruction(const Access &access,
                                     const Record &earlier) {
  const WarpClock &clock = access.warp->clock;
  return earlier.time == access.record.time &&
         earlier.component == access.record.component &&
         (earlier.component == clock.lanes ||
          earlier.component == clock.copies ||
          earlier.component == clock.bulkReads ||
          earlier.component == clock.bulkWrites);
}

void RaceDetector::touch(Access &access, ShadowedMemory &memory,
                         std::uint64_t index, std::uint16_t bytes) {
  Cell &cell = memory.cells.cell(index);
  const Record &later = access.record;
  bool isWrite = later.isWrite();
  if (early_ && &memory == &global_)
    noteEarly(access, index, bytes);
  Record suspect{};
  std::uint16_t readBefore = 0; // by these lanes
  if (isWrite && index < memory.barriers.size() && memory.barriers[index])
    reportOverBarrier(access, memory, index, bytes);
  auto meet = [&](Record &earlier) {
    auto overlap = static_cast<std::uint16_t>(earlier.bytes & bytes);
    if (!overlap || isSameInstruction(access, earlier) ||
        (earlier.component == later.component && earlier.time > readAt_))
      return;
    bool isGone = isReplaced(access, earlier);
    if (isGone && !earlier.isWrite())
      readBefore |= overlap;
    if (isWrite || earlier.isWrite()) {
      Verdict verdict = judge(access, earlier, overlap);
      if (verdict >= Verdict::deFacto &&
          isObservedBefore(access, earlier, overlap, memory, index))
        verdict = Verdict::ordered;
      // What a read has returned is over, and the read is judged by itself.
      if (verdict == Verdict::unordered && later.isAsync() &&
          isCopiedSince(earlier, overlap, memory, index) &&
          isOrderedDeFacto(access, earlier, overlap, View::generic))
        verdict = Verdict::ordered;
      if (verdict >= Verdict::deFacto)
        report(access, earlier, overlap, memory, index, verdict);
      if (verdict == Verdict::strong && !isWrite) {
        suspect = earlier;
        suspect.bytes = overlap;
      }
      isGone = isWrite && (isGone || verdict != Verdict::strong);
    }
    // What a strong access meets, another strong one may race with that is not
    // ordered after this.
    isGone &= !later.isStrong() || earlier.isStrong();
    if (isGone && access.isRecorded)
      earlier.bytes &= static_cast<std::uint16_t>(~bytes);
  };
  Crowd *crowd = memory.cells.findCrowd(cell);
  bool isInCrowd = crowd && isOneOf(*crowd, access);
  if (isInCrowd && crowd->size < crowd->limit) {
    memory.cells.forEachAlone(cell, meet);
  } else {
    memory.cells.forEach(cell, meet);
    if (isInCrowd)
      crowd->tidy();
  }
  // Whoever has read the place before reads nothing older: it is a flag itself.
  if (suspect.bytes & ~readBefore)
    reportAnnounced(access, suspect, memory, index);
  if (access.isRecorded)
    put(access, memory, cell, bytes);
}

bool RaceDetector::touchAlike(Access &access, ShadowedMemory &memory,
                              std::span<const PageCells> places) {
  const Record &later = access.record;
  bool isWrite = later.isWrite();
  // What is put into a cell that is full depends on what is not asynchronous.
  if (!later.isAsync() || isByCell)
    return false;
  auto isOther = [&](const Layer &layer, CellSet cells) {
    return (layer.cells & cells) && !isSameInstruction(access, layer.record);
  };
  const Record *judged = nullptr; // the last one, which was ordered
  for (const auto &[number, cells] : places) {
    Shadow::Page &page = memory.cells.page(number);
    if (page.isSplit || page.layers.size() >= Shadow::kMaxLayers)
      return false;
    for (const Layer &layer : page.layers) {
      const Record &earlier = layer.record;
      if (!isOther(layer, cells) || !(isWrite || earlier.isWrite()) ||
          (judged && judged->isSameAccess(earlier)))
        continue;
      if (judge(access, layer.whole(), 0xffff) != Verdict::ordered)
        return false;
      judged = &earlier;
    }
    if (isWrite && memory.hasBarrier(number, cells))
      return false;
    Layer touched{later, cells};
    touched.record.bytes = 0xffff;
    if (isWrite && page.hasReads() &&
        !isOrderedAfterReads(access, touched, page.reads->list()))
      return false;
  }
  if (!access.isRecorded)
    return true;
  for (const auto &[number, cells] : places) {
    for (CellSet left = early_ && &memory == &global_ ? cells : 0; left;
         left &= left - 1)
      noteEarly(access,
                number * Shadow::kPageCells +
                    static_cast<unsigned>(std::countr_zero(left)),
                0xffff);
    Shadow::Page &page = memory.cells.page(number);
    if (isWrite && page.hasReads()) {
      for (Layer &read : page.reads->list())
        if (!isSameInstruction(access, read.record))
          read.cells &= ~cells;
      page.reads->eraseEmpty();
    }
    auto &layers = page.layers;
    for (Layer &layer : layers) {
      if (!isOther(layer, cells))
        continue;
      bool isGone = isWrite || (!layer.record.isWrite() &&
                                isReplaced(access, layer.record));
      isGone &= !later.isStrong() || layer.record.isStrong();
      if (isGone)
        layer.cells &= ~cells;
    }
    std::erase_if(layers, [](const Layer &layer) { return !layer.cells; });
    auto same =
        std::find_if(layers.begin(), layers.end(), [&](const Layer &layer) {
          return layer.record.isSameAccess(later);
        });
    if (same != layers.end()) {
      same->cells |= cells;
      continue;
    }
    if (layers.empty())
      reserveBounded(layers, 8);
    layers.push_back({later, cells});
    layers.back().record.bytes = 0xffff;
  }
  return true;
}

static std::uint32_t lastEdgeOf(const Access &access) {
  return access.logged ? access.logged->edge : access.warp->clock.lastEdge;
}

void RaceDetector::put(Access &access, ShadowedMemory &memory, Cell &cell,
                       std::uint16_t bytes) {
  Record &record = access.record;
  std::uint32_t edge = lastEdgeOf(access);
  record.bytes = bytes;
  bool isFull = true;
  for (Record &slot : cell.records) {
    if (!slot.bytes) {
      isFull = false;
      continue;
    }
    bool isAlike = slot.component == record.component &&
                   slot.flags == record.flags && slot.lanes == record.lanes &&
                   !(slot.flags & Record::kSplit);
    if (!isAlike || slot.op != record.op ||
        (slot.time != record.time && slot.time <= edge))
      continue;
    slot.bytes |= bytes;
    slot.time = record.time;
    return;
  }
  if (!isFull)
    return memory.cells.add(cell, record);
  // Make room: reads that are ordered before this access, and accesses by the
  // same lanes since they last handed something over.
  for (Record &slot : cell.records) {
    bool isAlike = slot.component == record.component &&
                   slot.flags == record.flags && slot.lanes == record.lanes &&
                   !(slot.flags & Record::kSplit) &&
                   slot.time > edge;
    if (isAlike) {
      slot.bytes |= bytes;
      slot.time = record.time;
      slot.op = record.op;
      return;
    }
    bool isOver = !access.logged && !slot.isWrite() && !slot.isAsync() &&
                  !record.isAsync() &&
                  !record.isStrong() && (slot.bytes & ~bytes) == 0 &&
                  slot.component != record.component &&
                  isOrderedStrictly(access, slot, slot.bytes, View::generic);
    if (isOver) {
      slot = record;
      return;
    }
  }
  bool isCounted = record.isStrong() && record.isWrite() && !record.isAsync();
  if (isCounted)
    return join(access, memory.cells.crowd(cell));
  memory.cells.add(cell, record);
}

bool RaceDetector::isOneOf(const Crowd &crowd, const Access &access) {
  const Record &record = access.record;
  if (!record.isStrong() || !record.isWrite() || !access.isRecorded)
    return false;
  bool reachesAll = crowd.reach == Scope::gpu && record.scope() == Scope::gpu;
  return reachesAll ||
         (crowd.isOfOneCta && crowd.cta == access.warp->clock.cta);
}

void RaceDetector::join(const Access &access, Crowd &crowd) {
  const Record &record = access.record;
  const LoggedAccess *logged = access.logged;
  std::uint32_t parting =
      logged ? logged->parting : access.warp->clock.lastParting;
  std::uint32_t since = std::max(lastEdgeOf(access), parting);
  crowd.note(record.scope(), logged ? logged->cta : access.warp->clock.cta);
  auto &records = crowd.members[record.component];
  for (Record &slot : records) {
    if (slot.bytes != record.bytes || slot.flags != record.flags)
      continue;
    // Since then nobody can have learnt what one lane did and not the other.
    bool isJoined = slot.op == record.op && !(slot.flags & Record::kSplit) &&
                    slot.time > since;
    if (isJoined) {
      slot.lanes |= record.lanes;
      slot.time = record.time;
      return;
    }
    if (isReplaced(access, slot)) {
      slot = record;
      return;
    }
  }
  records.push_back(record);
  ++crowd.size;
}

} // namespace kiln::sim
