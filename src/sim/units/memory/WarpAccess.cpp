// WarpAccess: addresses, their pattern, and one look for all of them.
#include "sim/units/memory/WarpAccess.h"
#include "support/HostProcessor.h"

#include <bit>
#include <cstring>
#include <utility>

namespace kiln::sim {

/// Four addresses, from lanes of either width. They are no wider than what
/// handlers write registers in: the host hands a value that has just been
/// stored on to no load that is wider.
using Four = std::uint64_t __attribute__((vector_size(32)));
using FourNarrow = std::uint32_t __attribute__((vector_size(16)));
static constexpr std::size_t kFours = kLanes / 4;

/// What lane numbers come to, for vectors: times 1, 2, 4, ... bytes, and bits.
struct alignas(64) LaneNumbers {
  std::uint64_t lanes[kLanes];
};
static constexpr int kMostBytesLog = 6;
static constexpr auto kSteps = [] {
  std::array<LaneNumbers, kMostBytesLog> steps{};
  for (std::size_t log = 0; log < steps.size(); ++log)
    for (std::uint64_t lane = 0; lane < kLanes; ++lane)
      steps[log].lanes[lane] = lane << log;
  return steps;
}();
static constexpr auto kBits = [] {
  LaneNumbers bits{};
  for (int lane = 0; lane < kLanes; ++lane)
    bits.lanes[lane] = std::uint64_t(1) << lane;
  return bits;
}();

// By reference: how such vectors are returned depends on the processor.
[[gnu::always_inline]] static inline void get(Four &four,
                                              const std::uint64_t *from) {
  std::memcpy(&four, from, sizeof(four));
}
[[gnu::always_inline]] static inline void get(Four &four,
                                              const std::uint32_t *from) {
  FourNarrow narrow;
  std::memcpy(&narrow, from, sizeof(narrow));
  four = __builtin_convertvector(narrow, Four);
}

[[gnu::always_inline]] static inline bool isZero(const Four &four) {
  using Two = std::uint64_t __attribute__((vector_size(16)));
  Two two = __builtin_shufflevector(four, four, 0, 1) |
            __builtin_shufflevector(four, four, 2, 3);
  return (two[0] | two[1]) == 0;
}

/// `to` gets from + offset, without a bit in `lanes` that of the first lane
/// with one; how they lie.
template <bool isWhole, typename S>
[[gnu::always_inline]] static inline Pattern
takeAddresses(std::uint64_t *to, const S *from, std::uint64_t offset,
              LaneMask lanes, int first, std::uint32_t bytes) {
  std::uint64_t one = from[first] + offset;
  const LaneNumbers &steps =
      kSteps[static_cast<std::size_t>(std::countr_zero(bytes))];
  std::uint64_t start = one - steps.lanes[first];
  Four uniform{}, consecutive{};
#pragma GCC unroll 8
  for (std::size_t i = 0; i < kFours; ++i) {
    Four addresses, expected;
    get(addresses, from + 4 * i);
    get(expected, steps.lanes + 4 * i);
    addresses += offset;
    expected += start;
    if constexpr (isWhole) {
      consecutive |= addresses ^ expected;
    } else {
      Four bits;
      get(bits, kBits.lanes + 4 * i);
      Four isIn = Four((bits & std::uint64_t(lanes)) != 0);
      addresses = (addresses & isIn) | (one & ~isIn);
      consecutive |= (addresses ^ expected) & isIn;
    }
    uniform |= addresses ^ one;
    std::memcpy(to + 4 * i, &addresses, sizeof(addresses));
  }
  return isZero(uniform)       ? Pattern::uniform
         : isZero(consecutive) ? Pattern::consecutive
                               : Pattern::scattered;
}

template <typename S>
[[gnu::always_inline]] static inline Pattern
takeSome(std::uint64_t *to, const S *from, std::uint64_t offset, LaneMask lanes,
         int first, std::uint32_t bytes) {
  return lanes == kAllLanes
             ? takeAddresses<true>(to, from, offset, lanes, first, bytes)
             : takeAddresses<false>(to, from, offset, lanes, first, bytes);
}

KILN_WIDEST_VECTORS static Pattern
takeWide(std::uint64_t *to, const std::uint64_t *from, std::uint64_t offset,
         LaneMask lanes, int first, std::uint32_t bytes) {
  return takeSome(to, from, offset, lanes, first, bytes);
}

KILN_WIDEST_VECTORS static Pattern
takeNarrow(std::uint64_t *to, const std::uint32_t *from, std::uint64_t offset,
           LaneMask lanes, int first, std::uint32_t bytes) {
  return takeSome(to, from, offset, lanes, first, bytes);
}

KILN_WIDEST_VECTORS static void gatherWords(std::uint32_t *to,
                                            const std::uint8_t *data,
                                            const std::uint64_t *addresses,
                                            std::uint64_t base) {
  using Words = std::uint32_t __attribute__((vector_size(32)));
  for (std::size_t i = 0; i < kLanes; i += 8) {
    const std::uint64_t *from = addresses + i;
    const std::uint8_t *first = data + (from[0] - base);
    // Often eight of them are like a whole warp's: of tiles of 8 x 8 and 16
    // x 16.
    Four low, high, lowSteps, highSteps;
    get(low, from);
    get(high, from + 4);
    get(lowSteps, kSteps[2].lanes);
    get(highSteps, kSteps[2].lanes + 4);
    low -= from[0];
    high -= from[0];
    Words words;
    if (isZero((low ^ lowSteps) | (high ^ highSteps))) {
      std::memcpy(&words, first, sizeof(words));
      std::memcpy(to + i, &words, sizeof(words));
    } else if (isZero(low | high)) {
      std::uint32_t word;
      std::memcpy(&word, first, sizeof(word));
      words = Words{} + word;
      std::memcpy(to + i, &words, sizeof(words));
    } else {
      for (std::size_t lane = 0; lane < 8; ++lane)
        std::memcpy(to + i + lane, data + (from[lane] - base), sizeof(*to));
    }
  }
}

void WarpAccess::gather(std::uint32_t *words) const {
  gatherWords(words, data_, addresses_.data(), base_);
}

namespace {
struct Extent {
  std::uint64_t low, high;
  std::uint64_t any; ///< bits that some address has
};
} // namespace

KILN_WIDEST_VECTORS static Extent extentOf(const std::uint64_t *addresses) {
  Four low, high, any;
  get(low, addresses);
  high = any = low;
  for (std::size_t i = 1; i < kFours; ++i) {
    Four four;
    get(four, addresses + 4 * i);
    any |= four;
    low = four < low ? four : low;
    high = four > high ? four : high;
  }
  Extent extent{low[0], high[0], any[0]};
  for (int i = 1; i < 4; ++i) {
    extent.any |= any[i];
    extent.low = low[i] < extent.low ? low[i] : extent.low;
    extent.high = high[i] > extent.high ? high[i] : extent.high;
  }
  return extent;
}

void WarpAccess::computeAddresses() {
  const Reg &reg = op_->src[0];
  auto offset = static_cast<std::uint64_t>(op_->imm);
  first_ = firstLane(lanes_);
  const Warp &warp = *warp_;
  pattern_ = reg.width == 8
                 ? takeWide(addresses_.data(), warp.lanes<std::uint64_t>(reg),
                            offset, lanes_, first_, bytes_)
                 : takeNarrow(addresses_.data(), warp.lanes<std::uint32_t>(reg),
                              offset, lanes_, first_, bytes_);
  if (pattern_ == Pattern::scattered) {
    Extent extent = extentOf(addresses_.data());
    low_ = extent.low;
    high_ = extent.high;
    anyBits_ = extent.any;
    isDense_ = false;
    return;
  }
  low_ = high_ = anyBits_ = addresses_[first_];
  if (pattern_ == Pattern::consecutive)
    high_ = addresses_[kLanes - 1 - std::countl_zero(lanes_)];
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
  offset_ = low_ - region->base;
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
  window_ += low_ - plain + kFirstSharedAddress;
  offset_ = plain - kFirstSharedAddress;
  data_ = cta.shared.data() + offset_;
  valid_ = &cta.sharedValid;
  owner_ = &cta;
  return true;
}

bool WarpAccess::findParameter() {
  const std::vector<std::uint8_t> &params = warp_->machine().config().params;
  if (isWrite_ || !isInside(high_, bytes_, params.size()))
    return false;
  data_ = const_cast<std::uint8_t *>(params.data()) + low_;
  valid_ = nullptr;
  offset_ = 0;
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
  base_ = window_;
  offset_ = 0;
  return true;
}

bool WarpAccess::find(Warp &warp, const Op &op, Space space, LaneMask lanes,
                      std::uint32_t bytes, bool isWrite) {
  warp_ = &warp;
  op_ = &op;
  lanes_ = lanes;
  bytes_ = bytes;
  isWrite_ = isWrite;
  window_ = 0;
  owner_ = nullptr;
  computeAddresses();
  base_ = low_;
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
      window_ = window << kWindowShift;
      low_ -= window_;
      high_ -= window_;
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

void WarpAccess::tell(LaneMask same, const std::uint8_t *values) {
  if (space_ != Space::global && space_ != Space::shared)
    return;
  if (std::uint64_t start = std::exchange(window_, 0)) {
    base_ -= start;
    for (std::uint64_t &address : addresses_)
      address -= start;
  }
  AlikeLanes alike{addresses_.data(),    lanes_, same,     owner_,
                   bytes_,               isWrite_, pattern_, base_,
                   base_ + (high_ - low_)};
  warp_->watchers().tell(
      ThreadAccess{*warp_, *op_, alike, true, values, bytes_});
}

} // namespace kiln::sim
