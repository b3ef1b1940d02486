// WarpAccess: addresses, their pattern, and one look for all of them.
#include "sim/units/memory/WarpAccess.h"
#include "support/HostProcessor.h"

#include <bit>

namespace kiln::sim {

namespace {
/// What the addresses of a warp have in common.
struct Summary {
  std::uint64_t low, high;
  std::uint64_t any;     ///< bits that some address has
  bool isUniform, isConsecutive;
};
} // namespace

/// `to` gets from + offset; lanes without a bit get that of the first with one.
template <typename S>
[[gnu::always_inline]] static inline void
takeAddresses(std::uint64_t *to, const S *from, std::uint64_t offset,
              LaneMask lanes, int first) {
  for (int lane = 0; lane < kLanes; ++lane)
    to[lane] = from[lane] + offset;
  if (lanes == kAllLanes)
    return;
  std::uint64_t fill = to[first];
  for (int lane = 0; lane < kLanes; ++lane)
    to[lane] = (lanes & kLaneBits[lane]) ? to[lane] : fill;
}

[[gnu::always_inline]] static inline Summary
summarise(const std::uint64_t *addresses, LaneMask lanes, int first,
          std::uint32_t bytes) {
  std::uint64_t one = addresses[first];
  std::uint64_t start = one - static_cast<std::uint64_t>(first) * bytes;
  std::uint64_t uniform = 0, consecutive = 0, any = 0;
  std::uint64_t low = one, high = one;
  for (std::uint64_t lane = 0; lane < kLanes; ++lane) {
    std::uint64_t address = addresses[lane];
    bool isIn = (lanes & kLaneBits[lane]) != 0;
    uniform |= address ^ one;
    consecutive |= isIn ? address ^ (start + lane * bytes) : 0;
    any |= address;
    low = address < low ? address : low;
    high = address > high ? address : high;
  }
  return {low, high, any, uniform == 0, consecutive == 0};
}

KILN_WIDEST_VECTORS static Summary
computeWide(std::uint64_t *to, const std::uint64_t *from, std::uint64_t offset,
            LaneMask lanes, int first, std::uint32_t bytes) {
  takeAddresses(to, from, offset, lanes, first);
  return summarise(to, lanes, first, bytes);
}

KILN_WIDEST_VECTORS static Summary
computeNarrow(std::uint64_t *to, const std::uint32_t *from,
              std::uint64_t offset, LaneMask lanes, int first,
              std::uint32_t bytes) {
  takeAddresses(to, from, offset, lanes, first);
  return summarise(to, lanes, first, bytes);
}

void WarpAccess::computeAddresses() {
  const Reg &reg = op_->src[0];
  auto offset = static_cast<std::uint64_t>(op_->imm);
  first_ = firstLane(lanes_);
  const Warp &warp = *warp_;
  Summary summary =
      reg.width == 8
          ? computeWide(addresses_.data(), warp.lanes<std::uint64_t>(reg),
                        offset, lanes_, first_, bytes_)
          : computeNarrow(addresses_.data(), warp.lanes<std::uint32_t>(reg),
                          offset, lanes_, first_, bytes_);
  low_ = summary.low;
  high_ = summary.high;
  anyBits_ = summary.any;
  pattern_ = summary.isUniform       ? Pattern::uniform
             : summary.isConsecutive ? Pattern::consecutive
                                     : Pattern::scattered;
  isDense_ = pattern_ == Pattern::consecutive &&
             std::has_single_bit((lanes_ >> first_) + std::uint64_t(1));
}

bool WarpAccess::findGlobal(bool isWrite) {
  GlobalMemory &memory = warp_->machine().memory();
  std::size_t span = high_ - low_ + bytes_;
  auto slot =
      static_cast<std::size_t>(op_ - warp_->code().ops.data());
  Region *region =
      warp_->cta().cluster().recentRegions.find(memory, low_, span, slot);
  DeviceHeap *heap = memory.heap();
  if (!region || (isWrite && region->isReadOnly) ||
      (heap && heap->holds(region->base)))
    return false;
  if (!region->logs.empty()) {
    if (span <= TouchLog::kBlockBytes || isDense_)
      region->touch(low_, span, isWrite);
    else
      forEachLane(lanes_, [&](int lane) {
        region->touch(addresses_[lane], bytes_, isWrite);
      });
  }
  data_ = region->at(low_);
  valid_ = &region->valid;
  base_ = low_;
  offset_ = low_ - region->base;
  owner_ = nullptr;
  return true;
}

bool WarpAccess::findShared() {
  Cta &cta = warp_->cta();
  constexpr std::uint64_t kPlain = (std::uint64_t(1) << kRankShift) - 1;
  auto rank = static_cast<std::uint64_t>(cta.rankInCluster());
  std::uint64_t plain = low_ & kPlain;
  bool isOwn = low_ >> kRankShift == rank && high_ >> kRankShift == rank;
  if (!isOwn || plain < kFirstSharedAddress ||
      !isInside(plain - kFirstSharedAddress, high_ - low_ + bytes_,
                cta.shared.size()))
    return false;
  // What is told of begins with the first byte of shared memory.
  std::uint64_t start = (low_ - plain) + kFirstSharedAddress;
  for (std::uint64_t &address : addresses_)
    address -= start;
  base_ = low_ - start;
  low_ -= start;
  high_ -= start;
  data_ = cta.shared.data() + base_;
  valid_ = &cta.sharedValid;
  offset_ = base_;
  owner_ = &cta;
  return true;
}

bool WarpAccess::findParameter() {
  const std::vector<std::uint8_t> &params = warp_->machine().config().params;
  if (isWrite_ || !isInside(high_, bytes_, params.size()))
    return false;
  data_ = const_cast<std::uint8_t *>(params.data()) + low_;
  valid_ = nullptr;
  base_ = low_;
  offset_ = 0;
  owner_ = nullptr;
  return true;
}

bool WarpAccess::findLocal() {
  std::uint64_t perLane = warp_->localBytes;
  if (!isInside(high_, bytes_, perLane))
    return false;
  for (std::uint64_t lane = 0; lane < kLanes; ++lane)
    addresses_[lane] += perLane * lane;
  pattern_ = Pattern::scattered;
  isDense_ = false;
  data_ = warp_->local.data();
  valid_ = &warp_->localValid;
  base_ = offset_ = 0;
  owner_ = nullptr;
  return true;
}

bool WarpAccess::find(Warp &warp, const Op &op, Space space, LaneMask lanes,
                      std::uint32_t bytes, bool isWrite) {
  warp_ = &warp;
  op_ = &op;
  lanes_ = lanes;
  bytes_ = bytes;
  isWrite_ = isWrite;
  computeAddresses();
  bool isParameter = space == Space::param;
  if (space == Space::generic) {
    std::uint64_t window = low_ >> kWindowShift;
    if (window != high_ >> kWindowShift)
      return false;
    bool isInWindow = window >= kSharedWindow >> kWindowShift &&
                      window < kCodeWindow >> kWindowShift;
    space = window == kSharedWindow >> kWindowShift  ? Space::shared
            : window == kParamWindow >> kWindowShift ? Space::param
            : window == kLocalWindow >> kWindowShift ? Space::local
                                                     : Space::global;
    if (isInWindow) {
      constexpr std::uint64_t kInside = (std::uint64_t(1) << kWindowShift) - 1;
      for (std::uint64_t &address : addresses_)
        address &= kInside;
      low_ &= kInside;
      high_ &= kInside;
    }
  }
  space_ = space;
  // Parameters may lie anywhere.
  if (!isParameter && space != Space::param && (anyBits_ & (bytes - 1)))
    return false;
  switch (space) {
  case Space::global:
    return findGlobal(isWrite);
  case Space::shared:
    return findShared();
  case Space::param:
    return findParameter();
  default:
    return findLocal();
  }
}

bool WarpAccess::isWritten() const {
  if (!valid_ || pattern_ == Pattern::uniform)
    return !valid_ || valid_->all(offset_, bytes_);
  std::size_t span = high_ - low_ + bytes_;
  // A few words at most; holes may be unwritten where nobody reads them.
  if (space_ != Space::local && span <= 1024 && valid_->all(offset_, span))
    return true;
  if (isDense_)
    return false;
  for (LaneMask left = lanes_; left; left &= left - 1)
    if (!valid_->all(offset_ + (addresses_[firstLane(left)] - base_), bytes_))
      return false;
  return true;
}

void WarpAccess::markWritten() const {
  if (!valid_)
    return;
  if (isDense_ || pattern_ == Pattern::uniform)
    return valid_->set(offset_, high_ - low_ + bytes_);
  forEachLane(lanes_, [&](int lane) {
    valid_->set(offset_ + (addresses_[lane] - base_), bytes_);
  });
}

void WarpAccess::tell(LaneMask same, const std::uint8_t *values) const {
  if (space_ != Space::global && space_ != Space::shared)
    return;
  AlikeLanes alike{addresses_.data(), lanes_,   same,    owner_,
                   bytes_,            isWrite_, pattern_};
  warp_->watchers().tell(
      ThreadAccess{*warp_, *op_, alike, true, values, bytes_});
}

} // namespace kiln::sim
