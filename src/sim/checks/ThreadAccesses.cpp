// ThreadAccesses: from lanes to cells.
#include "sim/checks/ThreadAccesses.h"
#include "sim/machine/Machine.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace kiln::sim {

void ThreadAccesses::take(const ThreadAccess &told) {
  warp_ = &told.warp;
  op_ = &told.op;
  isKept_ = told.values != nullptr;
  if (told.isFirst)
    reads_.warp = writes_.warp = nullptr;
  const AlikeLanes *alike = told.accesses.alike();
  if (alike && races_.defer(*warp_, *op_, *alike))
    return;
  if (alike && !op_->semantics.isStrong && !RaceDetector::isByCell &&
      takeAlike(&told, *alike))
    return;
  for (const LaneAccess one : told.accesses) {
    if (!alike && one.owner)
      races_.noteDirect(*one.owner);
    else if (!alike)
      races_.noteDirect(*op_, one.isWrite, one.address, one.bytes);
    add(one, isKept_ ? told.valueOf(one.lane) : nullptr);
  }
  flush();
}

void ThreadAccesses::restore(const LoggedAccess &logged, const Op &op,
                             const std::uint64_t *addresses, Cta *owner) {
  logged_ = &logged;
  op_ = &op;
  using Form = LoggedAccess::Form;
  AlikeLanes alike{
      .addresses = addresses,
      .lanes = logged.lanes,
      .same = 0,
      .owner = owner,
      .bytes = logged.bytes,
      .isWrite = (logged.flags & Record::kWrite) != 0,
      .pattern = logged.form == Form::uniform       ? Pattern::uniform
                 : logged.form == Form::consecutive ? Pattern::consecutive
                                                    : Pattern::scattered,
      .low = 0,
      .high = 0};
  reads_.op = writes_.op = nullptr;
  if (!(logged.flags & Record::kStrong) && takeAlike(nullptr, alike))
    return;
  for (const LaneAccess one : LaneAccesses(alike))
    add(one, nullptr);
  flush();
}

Access ThreadAccesses::made(bool isWrite) const {
  if (!logged_)
    return races_.plain(*warp_, *op_, isWrite);
  Access access{.op = op_, .logged = logged_};
  access.record = {.time = logged_->time,
                   .lanes = 0,
                   .component = logged_->component,
                   .op = logged_->op,
                   .bytes = 0,
                   .flags = logged_->flags};
  return access;
}

/// The lanes whose address is `distance` behind that of the lane before them,
/// which takes part too.
static LaneMask followers(const AlikeLanes &alike, std::uint64_t distance) {
  const std::uint64_t *addresses = alike.addresses;
  LaneMask mask = testLanes([&](int lane) {
    return lane > 0 && addresses[lane] == addresses[lane - 1] + distance;
  });
  return mask & alike.lanes & alike.lanes << 1;
}

bool ThreadAccesses::takeAlike(const ThreadAccess *told,
                               const AlikeLanes &alike) {
  // More are better looked at lane by lane.
  constexpr int kMaxRuns = 8;
  bool isUniform = alike.pattern == Pattern::uniform;
  bool isOneRun =
      alike.pattern == Pattern::consecutive &&
      std::has_single_bit((std::uint64_t(alike.lanes) >>
                           firstLane(alike.lanes)) + 1);
  if (isUniform || isOneRun) {
    Access &access = alike.isWrite ? writes_ : reads_;
    access = made(alike.isWrite);
    takeRun(told, alike, access, alike.lanes,
            isOneRun && countLanes(alike.lanes) > 1);
    return true;
  }
  LaneMask same = followers(alike, 0), next = followers(alike, alike.bytes);
  if (countLanes(alike.lanes & ~(same | next)) > kMaxRuns)
    return false;
  Access &access = alike.isWrite ? writes_ : reads_;
  access = made(alike.isWrite);
  for (LaneMask left = alike.lanes; left;) {
    int first = firstLane(left);
    LaneMask behind = first == kLanes - 1 ? 0 : ~LaneMask(0) << (first + 1);
    // Lanes that follow the first one alike.
    auto runOf = [&](LaneMask followers) {
      LaneMask ends = behind & ~followers;
      LaneMask until = ends ? (ends & -ends) - 1 : kAllLanes;
      return until & ~((LaneMask(1) << first) - 1);
    };
    LaneMask run = runOf(same);
    bool isInTurn = countLanes(run) == 1;
    if (isInTurn)
      run = runOf(next);
    takeRun(told, alike, access, run, countLanes(run) > 1 && isInTurn);
    left &= ~run;
  }
  return true;
}

void ThreadAccesses::takeRun(const ThreadAccess *told, const AlikeLanes &alike,
                             Access &access, LaneMask lanes, bool isInTurn) {
  constexpr std::uint64_t kCell = Shadow::kCellBytes,
                          kPage = Shadow::kPageBytes;
  ShadowedMemory &memory = alike.owner ? alike.owner->shadow : races_.global();
  int firstOfRun = firstLane(lanes);
  std::uint64_t begin = alike.addresses[firstOfRun];
  std::uint64_t count = isInTurn ? std::uint64_t(countLanes(lanes)) : 1;
  unsigned flags = access.record.flags &
                   ((1u << Record::kBaseShift) - 1 - Record::kSplit);
  if (isInTurn)
    flags |= Record::kSplit | unsigned(std::countr_zero(alike.bytes))
                                  << Record::kSizeShift;
  if (isKept_ && alike.isWrite && !alike.owner)
    flags |= Record::kKept;
  for (std::uint64_t at = begin, end = begin + count * alike.bytes; at < end;) {
    std::uint64_t page = at / kPage, until = std::min(end, (page + 1) * kPage);
    // Whole cells together, and what is left of one before and behind them.
    if (at % kCell || until - at < kCell)
      until = std::min(until, (at / kCell + 1) * kCell);
    else
      until = until / kCell * kCell;
    auto inPage = static_cast<std::uint32_t>(at % kPage);
    auto bytes = static_cast<std::uint32_t>(until - at);
    Layer layer{access.record, 0};
    std::uint32_t cells = std::max<std::uint32_t>(bytes / kCell, 1);
    layer.cells = ~CellSet(0) >> (Shadow::kPageCells - cells)
                  << inPage / kCell;
    layer.record.bytes = static_cast<std::uint16_t>(
        bytes >= kCell ? 0xffffu : ((1u << bytes) - 1) << inPage % kCell);
    layer.record.flags = static_cast<std::uint16_t>(flags);
    layer.record.lanes = lanes;
    if (isInTurn) {
      // The lanes of this part.
      auto first = static_cast<int>((at - begin) / alike.bytes);
      auto last = static_cast<int>((until - 1 - begin) / alike.bytes);
      layer.record.lanes = (LaneMask(2) << (firstOfRun + last)) -
                           (LaneMask(1) << (firstOfRun + first));
      layer.start = inPage;
    }
    // Of lanes that write the same bytes the last one's stay.
    if (flags & Record::kKept)
      keepRun(*told, alike,
              isInTurn ? layer.record.lanes : std::bit_floor(lanes), memory, at,
              until);
    touchPart(access, alike, memory, page, layer);
    at = until;
  }
}

void ThreadAccesses::keepRun(const ThreadAccess &told, const AlikeLanes &alike,
                             LaneMask lanes, ShadowedMemory &memory,
                             std::uint64_t begin, std::uint64_t end) {
  // Within one page, and often one behind the other.
  std::uint8_t *to = memory.cells.valuesAt(begin);
  std::uint64_t start = alike.addresses[firstLane(lanes)];
  if (told.valueBytes == alike.bytes && begin >= start) {
    std::memcpy(to, told.valueOf(firstLane(lanes)) + (begin - start),
                end - begin);
    return;
  }
  forEachLane(lanes, [&](int lane) {
    std::uint64_t its = alike.addresses[lane];
    std::uint64_t from = std::max(begin, its);
    std::uint64_t until = std::min(end, its + alike.bytes);
    if (from < until)
      std::memcpy(to + (from - begin), told.valueOf(lane) + (from - its),
                  until - from);
  });
}

void ThreadAccesses::touchPart(Access &access, const AlikeLanes &alike,
                               ShadowedMemory &memory, std::uint64_t page,
                               const Layer &layer) {
  if (logged_)
    return races_.restoreLayer(access, memory, page, layer);
  if (races_.touchLayer(access, memory, page, layer))
    return;
  for (CellSet left = layer.cells; left; left &= left - 1) {
    auto cell = static_cast<std::size_t>(std::countr_zero(left));
    std::uint32_t time = access.record.time;
    access.record = layer.recordOf(cell);
    access.record.time = time;
    access.issuers = access.record.lanes;
    access.isSame = (access.record.lanes & ~alike.same) == 0;
    races_.touch(access, memory, page * Shadow::kPageCells + cell,
                 layer.record.bytes);
  }
}

void ThreadAccesses::flush() {
  if (!run_.memory)
    return;
  Access &access = run_.isWrite ? writes_ : reads_;
  if (logged_ ? !access.op : !access.warp)
    access = made(run_.isWrite);
  constexpr unsigned kAlone = (1u << Record::kBaseShift) - 1 - Record::kSplit;
  unsigned flags = access.record.flags & kAlone;
  if (run_.isSplit)
    flags |= Record::kSplit | run_.first << Record::kBaseShift |
             std::countr_zero(run_.bytes) << Record::kSizeShift;
  if (isKept_ && run_.isWrite && !run_.memory->owner) {
    flags |= Record::kKept;
    std::memcpy(run_.memory->cells.valuesAt(
                    run_.cell * Shadow::kCellBytes + run_.first),
                &value_[run_.first], run_.end - run_.first);
  }
  access.record.flags = static_cast<std::uint16_t>(flags);
  access.record.lanes = access.issuers = run_.lanes;
  access.isSame = run_.isSame;
  auto bytes =
      static_cast<std::uint16_t>((1u << run_.end) - (1u << run_.first));
  if (logged_)
    races_.restore(access, *run_.memory, run_.cell, bytes);
  else
    races_.touch(access, *run_.memory, run_.cell, bytes);
  if (op_->semantics.isStrong && !logged_)
    synchronise();
  run_.memory = nullptr;
}

void ThreadAccesses::synchronise() {
  std::uint64_t address = run_.cell * Shadow::kCellBytes + run_.first;
  if (!run_.isSplit)
    return races_.synchronise(*warp_, op_->semantics, run_.lanes, *run_.memory,
                              address, run_.isWrite);
  forEachLane(run_.lanes, [&](int lane) {
    races_.synchronise(*warp_, op_->semantics, LaneMask(1) << lane,
                       *run_.memory, address, run_.isWrite);
    address += run_.bytes;
  });
}

void ThreadAccesses::add(const LaneAccess &one, const std::uint8_t *value) {
  constexpr std::uint64_t kCell = Shadow::kCellBytes;
  ShadowedMemory &memory = one.owner ? one.owner->shadow : races_.global();
  LaneMask bit = LaneMask(1) << one.lane;
  std::uint64_t begin = one.address;
  for (std::uint64_t end = begin + one.bytes; begin < end;) {
    std::uint64_t cell = begin / kCell;
    auto first = static_cast<std::uint32_t>(begin % kCell);
    auto last = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(kCell, first + end - begin));
    std::uint64_t before = begin - one.address;
    begin += last - first;
    bool isSameCell = run_.memory == &memory && run_.cell == cell &&
                      run_.isWrite == one.isWrite;
    bool isShared =
        isSameCell && !run_.isSplit && run_.first == first && run_.end == last;
    bool isNext = isSameCell && run_.end == first &&
                  one.lane == run_.lane + 1 && last - first == run_.bytes &&
                  std::has_single_bit(run_.bytes) &&
                  (run_.isSplit || countLanes(run_.lanes) == 1);
    if (isShared || isNext) {
      run_.isSplit |= isNext;
      run_.end = last;
      run_.lane = isNext ? one.lane : run_.lane;
      run_.lanes |= bit;
      run_.isSame &= one.isSame;
    } else {
      flush();
      run_ = {&memory,  cell, first, last,        last - first,
              one.lane, bit,  false, one.isWrite, one.isSame};
    }
    if (value)
      keep(first, value + before);
  }
  // A lane that hands something over hands it to the lanes behind it, too.
  bool isAlone = !logged_ && op_->semantics.isStrong && one.isWrite &&
                 (!op_->semantics.isAtomic ||
                  RaceDetector::publishes(*warp_, op_->semantics, bit, memory,
                                          one.address));
  if (isAlone)
    flush();
}

} // namespace kiln::sim
