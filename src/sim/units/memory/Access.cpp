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
      fault(warp_.machine().memory().isFreed(address)
                ? FindingId::useAfterFree
                : FindingId::outOfBounds,
            lane,
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
  // What was written there since by something else is none of that store's;
  // global memory keeps no origins, for other clusters have numbers of theirs.
  bool isOfStore = store != cluster.unwrittenStores.end() &&
                   (place.isGlobal() || store->second.origin == known);
  if (known && !isOfStore)
    return known;
  return cluster.noteOrigin(op, [&] {
    return describeUnwritten(warp, first, isOfStore ? &store->second : nullptr);
  });
}

void Accessor::note(const ByteRange &place, std::uint64_t address,
                    std::size_t bytes, int lane, bool isWrite) {
  if (count_ == told_.size())
    tell();
  told_[count_++] = {place.owner ? place.offset : address,
                     place.owner,
                     static_cast<std::uint32_t>(bytes),
                     static_cast<std::uint8_t>(lane),
                     isWrite,
                     /*isSame=*/false};
}

void Accessor::tell() {
  warp_.watchers().tell(
      ThreadAccess{
      warp_, op_, std::span<const LaneAccess>(told_.data(), count_), isFirst_,
      values_});
  isFirst_ = false;
  count_ = 0;
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
    if (isTold_)
      note(place, address, bytes, lane, isWrite);
    return place;
  }
  if (space == Space::param)
    return locateParameter(address, bytes, lane, isWrite);
  return locateLocal(address, bytes, alignment, lane);
}

} // namespace kiln::sim
