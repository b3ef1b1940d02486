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
  for (const LaneAccess &one : told.accesses)
    add(told, one);
  flush();
}

void ThreadAccesses::flush() {
  if (!run_.memory)
    return;
  Access &access = run_.isWrite ? writes_ : reads_;
  if (!access.warp)
    access = races_.plain(*warp_, *op_, run_.isWrite);
  constexpr unsigned kAlone = (1u << Record::kBaseShift) - 1 - Record::kSplit;
  unsigned flags = access.record.flags & kAlone;
  if (run_.isSplit)
    flags |= Record::kSplit | run_.first << Record::kBaseShift |
             std::countr_zero(run_.bytes) << Record::kSizeShift;
  if (isKept_ && run_.isWrite && !run_.memory->owner) {
    flags |= Record::kKept;
    run_.memory->cells.keep(run_.cell, run_.first, &value_[run_.first],
                            run_.end - run_.first);
  }
  access.record.flags = static_cast<std::uint16_t>(flags);
  access.record.lanes = access.issuers = run_.lanes;
  access.isSame = run_.isSame;
  races_.touch(
      access, *run_.memory, run_.cell,
      static_cast<std::uint16_t>((1u << run_.end) - (1u << run_.first)));
  if (op_->semantics.isStrong)
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

void ThreadAccesses::add(const ThreadAccess &told, const LaneAccess &one) {
  constexpr std::uint64_t kCell = Shadow::kCellBytes;
  ShadowedMemory &memory = one.owner ? one.owner->shadow : races_.global();
  const std::uint8_t *value =
      isKept_ ? told.values + one.lane * ThreadAccess::kValueBytes : nullptr;
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
  bool isAlone = op_->semantics.isStrong && one.isWrite &&
                 (!op_->semantics.isAtomic ||
                  RaceDetector::publishes(*warp_, op_->semantics, bit, memory,
                                          one.address));
  if (isAlone)
    flush();
}

} // namespace kiln::sim
