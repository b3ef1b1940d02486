// Access: bounds, alignment and windows of every address.
#include "sim/units/memory/Access.h"
#include "support/Error.h"

#include <algorithm>
#include <cstring>

namespace kiln::sim {

Cta *sharedOwner(Cta &cta, std::uint64_t address, std::uint32_t &plain) {
  plain = static_cast<std::uint32_t>(address & ((1u << kRankShift) - 1));
  std::uint64_t rank = address >> kRankShift;
  if (rank >= cta.cluster().size())
    return nullptr;
  return &cta.cluster().cta(static_cast<int>(rank));
}

void Accessor::fault(FindingId id, int lane, const std::string &message,
                     const FindingObject &object) {
  warp_.machine().findings().fault(id, warp_, op_, LaneMask(1) << lane, message,
                                   object);
}

/// An operand without values has no size; then any address will do.
static bool isAligned(std::uint64_t address, std::size_t alignment) {
  return alignment == 0 || address % alignment == 0;
}

Cta &Accessor::ownerOfGeneric(std::uint64_t address, std::size_t bytes,
                              int lane, std::uint32_t &plain) {
  if (address >> kWindowShift == kSharedWindow >> kWindowShift) {
    std::uint64_t shared = address - kSharedWindow;
    warp_.machine().findings().report(
        FindingId::genericSharedAddress, warp_, op_, LaneMask(1) << lane,
        fmt::format("{} of {} bytes in .shared at {:#x}, which is a generic "
                    "address; missing: cvta.to.shared "
                    "(__cvta_generic_to_shared)",
                    verb_, bytes, address),
        {"shared", shared});
    if (Cta *cta = sharedOwner(warp_.cta(), shared, plain))
      return *cta;
  }
  fault(FindingId::outOfBounds, lane,
        fmt::format("shared address {:#x} names CTA {} of a cluster of {}",
                    address, address >> kRankShift,
                    warp_.cta().cluster().size()));
}

ByteRange Accessor::locateShared(std::uint64_t address, std::size_t bytes,
                                 std::size_t alignment, int lane, Cta **owner) {
  std::uint32_t plain;
  Cta *cta = sharedOwner(warp_.cta(), address, plain);
  if (!cta)
    cta = &ownerOfGeneric(address, bytes, lane, plain);
  if (owner)
    *owner = cta;
  if (cta != &warp_.cta() && cta->isDone())
    fault(FindingId::ctaExit, lane,
          fmt::format("{} of {} bytes at {} of CTA {} of the cluster, which "
                      "has left the kernel; missing: a cluster barrier before "
                      "it leaves",
                      verb_, bytes,
                      warp_.machine().findings().describeShared(plain),
                      cta->rankInCluster()),
          {"shared", plain});
  if (plain < kFirstSharedAddress ||
      !isInside(plain - kFirstSharedAddress, bytes, cta->shared.size()))
    fault(FindingId::outOfBounds, lane,
          fmt::format("{} of {} bytes at shared address {}; the CTA has {} "
                      "bytes from address {} on",
                      verb_, bytes, plain, cta->shared.size(),
                      kFirstSharedAddress),
          {"shared", plain});
  if (!isAligned(plain, alignment))
    fault(FindingId::misaligned, lane,
          fmt::format("{} of {} bytes at shared address {}, which is not a "
                      "multiple of {}",
                      verb_, bytes, plain, alignment),
          {"shared", plain});
  std::size_t offset = plain - kFirstSharedAddress;
  return {cta->shared.data() + offset, &cta->sharedValid, offset, cta};
}

void Accessor::checkGlobal(std::uint64_t address, std::size_t bytes,
                           std::size_t alignment, int lane, bool isWrite) {
  auto isInLast = [&] {
    return last_ && address >= last_->base &&
           isInside(address - last_->base, bytes, last_->bytes);
  };
  if (!isInLast()) {
    last_ = warp_.machine().memory().find(address);
    if (!isInLast())
      fault(FindingId::outOfBounds, lane,
            fmt::format("{} of {} bytes at global address {:#x}: {}", verb_,
                        bytes, address,
                        warp_.machine().memory().describe(address)),
            {"global", address, last_ ? last_->name : ""});
  }
  DeviceHeap *heap = warp_.machine().memory().heap();
  if (heap && !heap->isUsable(address, bytes))
    fault(FindingId::outOfBounds, lane,
          fmt::format("{} of {} bytes at global address {:#x}, which is in the "
                      "heap and in no block that malloc gave and that is in "
                      "use",
                      verb_, bytes, address),
          {"global", address, last_->name});
  if (!isAligned(address, alignment))
    fault(FindingId::misaligned, lane,
          fmt::format("{} of {} bytes at global address {:#x} ({}), which is "
                      "not a multiple of {}",
                      verb_, bytes, address,
                      warp_.machine().memory().describe(address), alignment),
          {"global", address, last_->name});
  if (isWrite && last_->isReadOnly)
    fault(FindingId::readOnly, lane,
          fmt::format("{} to the constant variable {}", verb_, last_->name),
          {"global", address, last_->name});
}

ByteRange Accessor::locateGlobal(std::uint64_t address, std::size_t bytes,
                                 std::size_t alignment, int lane,
                                 bool isWrite) {
  checkGlobal(address, bytes, alignment, lane, isWrite);
  last_->touch(address, bytes, isWrite);
  return {last_->at(address), &last_->valid,
          static_cast<std::size_t>(address - last_->base)};
}

ByteRange Accessor::locateParameter(std::uint64_t address, std::size_t bytes,
                                    int lane, bool isWrite) {
  const std::vector<std::uint8_t> &params = warp_.machine().config().params;
  if (!isInside(address, bytes, params.size()))
    fault(FindingId::outOfBounds, lane,
          fmt::format("{} of {} bytes at {} of {} bytes of parameters", verb_,
                      bytes, static_cast<std::int64_t>(address),
                      params.size()));
  if (isWrite)
    fault(FindingId::readOnly, lane,
          fmt::format("{} to the parameters of the kernel", verb_));
  return {const_cast<std::uint8_t *>(params.data()) + address, nullptr, 0};
}

ByteRange Accessor::locateLocal(std::uint64_t address, std::size_t bytes,
                                std::size_t alignment, int lane) {
  std::size_t perLane = warp_.localBytes;
  if (!isInside(address, bytes, perLane))
    fault(FindingId::outOfBounds, lane,
          fmt::format("{} of {} bytes at local address {}; a thread has {}",
                      verb_, bytes, static_cast<std::int64_t>(address),
                      perLane));
  if (!isAligned(address, alignment))
    fault(FindingId::misaligned, lane,
          fmt::format("{} of {} bytes at local address {}, which is not a "
                      "multiple of {}",
                      verb_, bytes, address, alignment));
  std::size_t offset = perLane * lane + address;
  return {warp_.local.data() + offset, &warp_.localValid, offset, nullptr,
          /*isLocal=*/true};
}

/// The first byte of a place that is not written.
static ByteRange firstUnwritten(const ByteRange &place, std::size_t bytes) {
  std::size_t first = 0;
  while (first + 1 < bytes && place.behind(first).isWritten(1))
    ++first;
  return place.behind(first);
}

/// That byte, in words; `store`: what put such a value there, or null.
static std::string describeUnwritten(Warp &warp, const ByteRange &first,
                                     const Cluster::UnwrittenStore *store) {
  Machine &machine = warp.machine();
  std::string where = "local memory";
  if (first.owner)
    where = machine.findings().describeShared(
        static_cast<std::uint32_t>(first.offset + kFirstSharedAddress));
  else if (first.isGlobal())
    for (const auto &[base, region] : machine.memory().regions())
      if (&region->valid == first.valid)
        where = machine.memory().describe(base + first.offset);
  if (!store)
    return where + ", which nobody wrote";
  return fmt::format("{}, where {} has stored a value that depends on bytes "
                     "nobody wrote{}",
                     where, machine.findings().placeOf(*store->op),
                     machine.findings().originText(warp, store->origin));
}

std::uint32_t originOf(Warp &warp, const Op &op, const ByteRange &place,
                       std::size_t bytes) {
  Cluster &cluster = warp.cta().cluster();
  std::uint32_t known = place.valid->origin(place.offset, bytes);
  ByteRange first = firstUnwritten(place, bytes);
  auto store = cluster.unwrittenStores.find(
      {first.valid, first.offset / Cluster::UnwrittenStore::kBytes});
  // What was written there since by something else is none of that store's.
  bool isOfStore =
      store != cluster.unwrittenStores.end() && store->second.origin == known;
  if (known && !isOfStore)
    return known;
  return cluster.noteOrigin(op, [&] {
    return describeUnwritten(warp, first, isOfStore ? &store->second : nullptr);
  });
}

void Accessor::flush() {
  if (!run_.memory)
    return;
  CheckTime time(warp_.observer());
  Access &access = run_.isWrite ? writes_ : reads_;
  if (!access.warp)
    access = order_->plain(warp_, op_, run_.isWrite);
  constexpr unsigned kAlone = (1u << Record::kBaseShift) - 1 - Record::kSplit;
  unsigned flags = access.record.flags & kAlone;
  if (run_.isSplit)
    flags |= Record::kSplit | run_.first << Record::kBaseShift |
             std::countr_zero(run_.bytes) << Record::kSizeShift;
  bool isKept = value_ && run_.isWrite && !run_.memory->owner;
  if (isKept) {
    flags |= Record::kKept;
    run_.memory->cells.keep(run_.cell, run_.first, &runValue_[run_.first],
                            run_.end - run_.first);
  }
  access.record.flags = static_cast<std::uint16_t>(flags);
  access.record.lanes = access.issuers = run_.lanes;
  access.isSame = run_.isSame;
  order_->touch(
      access, *run_.memory, run_.cell,
      static_cast<std::uint16_t>((1u << run_.end) - (1u << run_.first)));
  if (op_.semantics.isStrong)
    synchronise();
  run_.memory = nullptr;
}

void Accessor::synchronise() {
  std::uint64_t address = run_.cell * Shadow::kCellBytes + run_.first;
  if (!run_.isSplit)
    return order_->synchronise(warp_, op_.semantics, run_.lanes, *run_.memory,
                               address, run_.isWrite);
  forEachLane(run_.lanes, [&](int lane) {
    order_->synchronise(warp_, op_.semantics, LaneMask(1) << lane, *run_.memory,
                        address, run_.isWrite);
    address += run_.bytes;
  });
}

void Accessor::note(const ByteRange &place, std::uint64_t address,
                    std::size_t bytes, int lane, bool isWrite) {
  if (!order_)
    return;
  ShadowedMemory &memory = place.owner ? place.owner->shadow : order_->global();
  std::uint64_t begin = place.owner ? place.offset : address, at = begin;
  for (std::uint64_t end = begin + bytes; begin < end;) {
    constexpr std::uint64_t kCell = Shadow::kCellBytes;
    std::uint64_t cell = begin / kCell;
    auto first = static_cast<std::uint32_t>(begin % kCell);
    auto last = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(kCell, first + end - begin));
    std::uint64_t before = begin - at;
    begin += last - first;
    bool isSameCell =
        run_.memory == &memory && run_.cell == cell && run_.isWrite == isWrite;
    LaneMask bit = LaneMask(1) << lane;
    if (isSameCell && !run_.isSplit && run_.first == first &&
        run_.end == last) {
      run_.lanes |= bit;
      if (value_)
        keep(first, value_ + before);
      continue;
    }
    bool isNext = isSameCell && run_.end == first && lane == run_.lane + 1 &&
                  last - first == run_.bytes &&
                  std::has_single_bit(run_.bytes) &&
                  (run_.isSplit || countLanes(run_.lanes) == 1);
    if (isNext) {
      run_.isSplit = true;
      run_.end = last;
      run_.lane = lane;
      run_.lanes |= bit;
      if (value_)
        keep(first, value_ + before);
      continue;
    }
    flush();
    run_ = {&memory, cell, first, last,    last - first,
            lane,    bit,  false, isWrite, false};
    if (value_)
      keep(first, value_ + before);
  }
  // A lane that hands something over hands it to the lanes behind it, too.
  bool isAlone = op_.semantics.isStrong && isWrite &&
                 (!op_.semantics.isAtomic ||
                  RaceDetector::publishes(warp_, op_.semantics,
                                          LaneMask(1) << lane, memory, at));
  if (isAlone)
    flush();
}

ByteRange Accessor::locate(Space space, std::uint64_t address,
                           std::size_t bytes, std::size_t alignment, int lane,
                           bool isWrite) {
  if (space == Space::generic) {
    std::uint64_t window = address >> kWindowShift;
    std::uint64_t inside = address & ((std::uint64_t(1) << kWindowShift) - 1);
    switch (window) {
    case kSharedWindow >> kWindowShift:
      return locate(Space::shared, inside, bytes, alignment, lane, isWrite);
    case kParamWindow >> kWindowShift:
      return locate(Space::param, inside, bytes, alignment, lane, isWrite);
    case kLocalWindow >> kWindowShift:
      return locate(Space::local, inside, bytes, alignment, lane, isWrite);
    default:
      return locate(Space::global, address, bytes, alignment, lane, isWrite);
    }
  }
  if (space == Space::global || space == Space::shared) {
    ByteRange place =
        space == Space::global
            ? locateGlobal(address, bytes, alignment, lane, isWrite)
            : locateShared(address, bytes, alignment, lane);
    note(place, address, bytes, lane, isWrite);
    return place;
  }
  if (space == Space::param)
    return locateParameter(address, bytes, lane, isWrite);
  return locateLocal(address, bytes, alignment, lane);
}

} // namespace kiln::sim
