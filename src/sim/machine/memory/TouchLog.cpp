// TouchLog: keep a block before it is first written.
#include "sim/machine/memory/TouchLog.h"
#include "sim/machine/memory/Memory.h"

#include <algorithm>

namespace kiln::sim {

TouchLog::TouchLog(std::size_t bytes)
    : count_((bytes + kBlockBytes - 1) / kBlockBytes),
      states_(std::make_unique<std::atomic<std::uint8_t>[]>(count_)) {}

void TouchLog::note(const Region &region, std::size_t offset, std::size_t bytes,
                    bool isWrite) {
  if (bytes == 0)
    return;
  std::uint8_t wanted = isWrite ? kKept : kRead;
  std::size_t last = (offset + bytes - 1) / kBlockBytes;
  for (std::size_t block = offset / kBlockBytes; block <= last; ++block) {
    if (states_[block].load(std::memory_order_acquire) & wanted)
      continue;
    if (isWrite)
      keep(region, block);
    else
      states_[block].fetch_or(kRead, std::memory_order_relaxed);
  }
}

void TouchLog::keep(const Region &region, std::size_t block) {
  // Whoever comes second writes when the first has copied.
  std::lock_guard lock(mutex_);
  auto [kept, isNew] = kept_.try_emplace(block);
  if (!isNew)
    return;
  std::size_t begin = block * kBlockBytes;
  std::size_t bytes = std::min(kBlockBytes, region.bytes - begin);
  const std::uint8_t *from = region.data.get() + begin;
  kept->second.data.assign(from, from + bytes);
  const std::uint64_t *words = region.valid.words() + begin / 64;
  kept->second.valid.assign(words, words + (bytes + 63) / 64);
  states_[block].fetch_or(kKept, std::memory_order_release);
}

const TouchLog::Kept *TouchLog::find(std::size_t block) const {
  std::lock_guard lock(mutex_);
  auto found = kept_.find(block);
  return found == kept_.end() ? nullptr : &found->second;
}

void TouchLog::restore(Region &region) const {
  std::lock_guard lock(mutex_);
  for (const auto &[block, kept] : kept_) {
    std::size_t begin = block * kBlockBytes;
    for (const auto &log : region.logs) // of other snapshots
      if (log.get() != this)
        log->note(region, begin, kept.data.size(), /*isWrite=*/true);
    std::copy(kept.data.begin(), kept.data.end(), region.data.get() + begin);
    std::copy(kept.valid.begin(), kept.valid.end(),
              region.valid.words() + begin / 64);
  }
}

const std::uint8_t *TouchLog::data(const Region &region,
                                   std::size_t block) const {
  const Kept *kept = find(block);
  return kept ? kept->data.data() : region.data.get() + block * kBlockBytes;
}

const std::uint64_t *TouchLog::valid(const Region &region,
                                     std::size_t block) const {
  const Kept *kept = find(block);
  return kept ? kept->valid.data()
              : region.valid.words() + block * kBlockBytes / 64;
}

} // namespace kiln::sim
