// Memory: buffers in global memory and their validity.
#include "sim/machine/memory/Memory.h"
#include "sim/machine/memory/SpoiltPages.h"
#include "support/Error.h"

#include <algorithm>
#include <cstring>

namespace kiln::sim {

/// Call `body(word, mask)` for the bits of a range; ends where it says no.
template <typename Body>
static bool forEachWord(std::size_t offset, std::size_t bytes, Body &&body) {
  while (bytes) {
    std::size_t bit = offset % 64;
    std::size_t count = std::min<std::size_t>(64 - bit, bytes);
    std::uint64_t mask =
        (count == 64 ? ~std::uint64_t(0) : (std::uint64_t(1) << count) - 1)
        << bit;
    if (!body(offset / 64, mask))
      return false;
    offset += count;
    bytes -= count;
  }
  return true;
}

void ValidBits::setSlowly(std::size_t offset, std::size_t bytes) {
  forEachWord(offset, bytes, [&](std::size_t i, std::uint64_t mask) {
    if ((word(i) & mask) != mask)
      change(i, mask, true);
    return true;
  });
}

bool ValidBits::allSlowly(std::size_t offset, std::size_t bytes) const {
  return forEachWord(offset, bytes, [&](std::size_t i, std::uint64_t mask) {
    return (word(i) & mask) == mask;
  });
}

std::uint64_t ValidBits::unwritten(std::size_t offset,
                                   std::size_t bytes) const {
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < bytes && !all(offset, bytes); ++i)
    if (!all(offset + i, 1))
      bits |= std::uint64_t(0xff) << (8 * i);
  return bits;
}

void ValidBits::put(std::size_t offset, std::size_t bytes,
                    std::uint64_t unwritten) {
  if (!unwritten)
    return set(offset, bytes);
  for (std::size_t i = 0; i < bytes; ++i)
    if (unwritten >> (8 * i) & 0xff)
      clear(offset + i, 1);
    else
      set(offset + i, 1);
}

void ValidBits::clear(std::size_t offset, std::size_t bytes) {
  forEachWord(offset, bytes, [&](std::size_t i, std::uint64_t mask) {
    change(i, mask, false);
    return true;
  });
  if (!origins_.empty())
    setOrigin(offset, bytes, 0);
}

/// Origins are kept for so many bytes together.
static constexpr std::size_t kOriginBytes = 4;

std::uint32_t ValidBits::origin(std::size_t offset, std::size_t bytes) const {
  if (origins_.empty())
    return 0;
  for (std::size_t i = offset; i < offset + bytes; ++i)
    if (!all(i, 1)) {
      auto found = origins_.find(i / kOriginBytes);
      return found == origins_.end() ? 0 : found->second;
    }
  return 0;
}

void ValidBits::setOrigin(std::size_t offset, std::size_t bytes,
                          std::uint32_t origin) {
  std::size_t last = (offset + bytes - 1) / kOriginBytes;
  for (std::size_t i = offset / kOriginBytes; bytes && i <= last; ++i)
    if (origin)
      origins_[i] = origin;
    else
      origins_.erase(i);
}

Region *GlobalMemory::overlapping(std::uint64_t base, std::size_t bytes) {
  auto above = regions_.lower_bound(base);
  if (above != regions_.end() && above->first - base < bytes)
    return above->second.get();
  if (above == regions_.begin())
    return nullptr;
  Region *below = std::prev(above)->second.get();
  return base - below->base < below->bytes ? below : nullptr;
}

Region &GlobalMemory::add(std::uint64_t base, std::size_t bytes,
                          const std::string &name, Fresh fresh) {
  auto region = std::make_unique<Region>();
  region->name = name.empty() ? fmt::format("buffer {}", count_) : name;
  region->base = base;
  region->bytes = bytes;
  region->share.take(bytes, region->name);
  region->share.take(bytes / 8, region->name);
  try {
    region->data = fresh == Fresh::zero ? zeroBytes(bytes) : spoiltBytes(bytes);
    region->valid = ValidBits(bytes);
  } catch (const std::bad_alloc &) {
    HostMemory::fail(bytes, region->name);
  }
  ++count_;
  ++version_;
  return *(regions_[base] = std::move(region));
}

/// A gap behind each buffer, so that a small overrun hits nobody.
static constexpr std::uint64_t kGap = 4096;
static constexpr std::uint64_t kAlign = 256;

Region &GlobalMemory::allocate(std::size_t bytes, const std::string &name,
                               Fresh fresh) {
  std::lock_guard lock(mutex_);
  // What lies at an address of its own is passed over.
  while (Region *there = overlapping(next_, bytes + kGap))
    next_ = (there->base + there->bytes + kGap + kAlign - 1) / kAlign * kAlign;
  Region &region = add(next_, bytes, name, fresh);
  next_ += (bytes + kGap + kAlign - 1) / kAlign * kAlign;
  return region;
}

Region &GlobalMemory::allocateAt(std::uint64_t base, std::size_t bytes,
                                 const std::string &name, Fresh fresh) {
  constexpr std::uint64_t kLow = 4096, kLowEnd = kSharedWindow,
                          kHigh = kCodeWindow + kSharedWindow,
                          kHighEnd = std::uint64_t(1) << 49;
  std::lock_guard lock(mutex_);
  auto isBetween = [&](std::uint64_t first, std::uint64_t end) {
    return base >= first && base < end &&
           isInside(base - first, bytes, end - first);
  };
  if (!isBetween(kLow, kLowEnd) && !isBetween(kHigh, kHighEnd))
    userError(
        "{} bytes at {:#x} cannot be global memory, which is from {:#x} to "
        "{:#x} and from {:#x} to {:#x}",
        bytes, base, kLow, kLowEnd - 1, kHigh, kHighEnd - 1);
  // Where both are empty, two addresses are still two buffers.
  if (Region *there = overlapping(base, std::max<std::size_t>(bytes, 1)))
    userError("{} bytes at {:#x} overlap {}, {} bytes at {:#x}", bytes, base,
              there->name, there->bytes, there->base);
  return add(base, bytes, name, fresh);
}

Region &GlobalMemory::share(void *data, std::size_t bytes,
                            const std::string &name) {
  std::lock_guard lock(mutex_);
  auto base = reinterpret_cast<std::uint64_t>(data);
  bool isTaken = overlapping(base, bytes);
  if (isTaken || !isGlobalAddress(base))
    userError("{} bytes of the host at {:#x} cannot be shared with kernels: "
              "{}",
              bytes, base,
              isTaken ? "a part of them is already"
                      : "kernels find something else at that address");
  auto region = std::make_unique<Region>();
  region->name = name.empty() ? fmt::format("buffer {}", count_) : name;
  region->base = base;
  region->bytes = bytes;
  region->share.take(bytes / 8, region->name);
  region->data = std::shared_ptr<std::uint8_t[]>(
      static_cast<std::uint8_t *>(data), [](std::uint8_t *) {});
  region->valid = ValidBits(bytes, /*isWritten=*/true);
  ++count_;
  ++version_;
  return *(regions_[base] = std::move(region));
}

void GlobalMemory::makeHeap() {
  if (!heap_)
    heap_ = std::make_unique<DeviceHeap>(
        allocate(DeviceHeap::kBytes, "the heap of malloc").base);
}

void GlobalMemory::free(std::uint64_t base) {
  std::lock_guard lock(mutex_);
  ++version_;
  regions_.erase(base);
}

/// So many buffers that were freed are known by name.
static constexpr std::size_t kMostFreed = 4096;

void GlobalMemory::retire(std::uint64_t base) {
  std::lock_guard lock(mutex_);
  auto found = regions_.find(base);
  if (found == regions_.end())
    return;
  if (freed_.size() >= kMostFreed)
    freed_.erase(freed_.begin()); // addresses grow
  freed_[base] = {found->second->name, found->second->bytes};
  regions_.erase(found);
  ++version_;
}

void GlobalMemory::revive(std::uint64_t base, std::size_t bytes) {
  std::lock_guard lock(mutex_);
  if (regions_.contains(base))
    return;
  auto freed = freed_.find(base);
  std::string name = freed == freed_.end() ? "" : freed->second.name;
  if (freed != freed_.end())
    freed_.erase(freed);
  add(base, bytes, name, Fresh::spoilt);
}

const GlobalMemory::Freed *
GlobalMemory::freedAt(std::uint64_t address, std::uint64_t *base) const {
  auto above = freed_.upper_bound(address);
  if (above == freed_.begin())
    return nullptr;
  --above;
  *base = above->first;
  return address - above->first < above->second.bytes ? &above->second
                                                      : nullptr;
}

bool GlobalMemory::isFreed(std::uint64_t address) const {
  std::uint64_t base = 0;
  return freedAt(address, &base) != nullptr;
}

Region *GlobalMemory::find(std::uint64_t address) {
  auto above = regions_.upper_bound(address);
  if (above == regions_.begin())
    return nullptr;
  return std::prev(above)->second.get();
}

Region *GlobalMemory::holding(std::uint64_t address) {
  Region *region = find(address);
  return region && address - region->base < region->bytes ? region : nullptr;
}

void GlobalMemory::checkCopy(std::uint64_t to, std::uint64_t from,
                             std::size_t bytes) {
  for (std::uint64_t address : {to, from}) {
    Region *region = holding(address);
    // Addresses below those of mmap that no buffer has are nobody's.
    bool isHost = !region && (address < kGlobalBase || address >= next_) &&
                  address >= 4096;
    if (region ? !isInside(address - region->base, bytes, region->bytes)
               : !isHost && bytes)
      userError("a copy of {} bytes at {:#x}: {}", bytes, address,
                describe(address));
  }
}

void GlobalMemory::copy(std::uint64_t to, std::uint64_t from,
                        std::size_t bytes) {
  Region *target = holding(to), *source = holding(from);
  if (target)
    target->touch(to, bytes, /*isWrite=*/true);
  std::memmove(target ? target->at(to) : reinterpret_cast<std::uint8_t *>(to),
               source ? source->at(from)
                      : reinterpret_cast<const std::uint8_t *>(from),
               bytes);
  if (!target)
    return;
  std::size_t offset = to - target->base;
  if (!source || source->valid.all(from - source->base, bytes))
    return target->valid.set(offset, bytes);
  ValidBits before = source->valid;
  for (std::size_t i = 0; i < bytes; ++i)
    if (before.all(from - source->base + i, 1))
      target->valid.set(offset + i, 1);
    else
      target->valid.clear(offset + i, 1);
}

void GlobalMemory::fill(std::uint64_t to, std::uint32_t value, int elementBytes,
                        std::size_t count) {
  Region *target = holding(to);
  auto size = static_cast<std::size_t>(elementBytes);
  if (target)
    target->touch(to, count * size, /*isWrite=*/true);
  std::uint8_t *data =
      target ? target->at(to) : reinterpret_cast<std::uint8_t *>(to);
  if (size == 1)
    std::memset(data, static_cast<int>(value), count);
  else
    for (std::size_t i = 0; i < count; ++i)
      std::memcpy(data + i * size, &value, size);
  if (target)
    target->valid.set(to - target->base, count * size);
}

std::uint64_t GlobalMemory::shadowBytes() const {
  std::uint64_t sum = 0;
  for (const auto &[base, region] : regions_)
    sum += region->bytes / 8;
  return sum;
}

std::string GlobalMemory::describe(std::uint64_t address) {
  // Further away nobody meant that buffer.
  constexpr std::uint64_t kNear = 4096;
  auto above = regions_.upper_bound(address);
  Region *region = find(address);
  if (region && address - region->base < region->bytes)
    return fmt::format("byte {} of {} ({} bytes)", address - region->base,
                       region->name, region->bytes);
  std::uint64_t base = 0;
  if (const Freed *freed = freedAt(address, &base))
    return fmt::format("byte {} of {} ({} bytes), which the program has freed",
                       address - base, freed->name, freed->bytes);
  std::uint64_t behind =
      region ? address - region->base - region->bytes : ~std::uint64_t(0);
  std::uint64_t before =
      above == regions_.end() ? ~std::uint64_t(0) : above->first - address;
  if (before < behind && before <= kNear)
    return fmt::format("{} bytes before {} ({} bytes)", before,
                       above->second->name, above->second->bytes);
  if (behind <= kNear)
    return fmt::format("{} bytes past the end of {} ({} bytes)", behind,
                       region->name, region->bytes);
  return "no buffer is near that address";
}

} // namespace kiln::sim
