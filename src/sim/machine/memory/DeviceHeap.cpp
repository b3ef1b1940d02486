// DeviceHeap: blocks, one behind the other.
#include "sim/machine/memory/DeviceHeap.h"

#include <algorithm>

namespace kiln::sim {

/// Between blocks, so that who leaves one is not in the next.
static constexpr std::uint64_t kBlockGap = 16;

static std::uint64_t roundUp(std::uint64_t bytes) {
  return (std::max<std::uint64_t>(bytes, 1) + 15) / 16 * 16;
}

std::uint64_t DeviceHeap::allocate(std::uint64_t bytes) {
  std::lock_guard lock(mutex_);
  if (bytes > kBytes)
    return 0;
  std::uint64_t size = roundUp(bytes) + kBlockGap, address = blocks_.next;
  if (size <= base_ + kBytes - blocks_.next) {
    blocks_.next += size;
  } else {
    auto fitting = blocks_.unused.lower_bound(size);
    if (fitting == blocks_.unused.end())
      return 0;
    address = fitting->second;
    blocks_.unused.erase(fitting);
  }
  blocks_.used[address] = bytes;
  return address;
}

bool DeviceHeap::free(std::uint64_t address) {
  std::lock_guard lock(mutex_);
  auto block = blocks_.used.find(address);
  if (block == blocks_.used.end())
    return false;
  blocks_.unused.emplace(roundUp(block->second) + kBlockGap, address);
  blocks_.used.erase(block);
  return true;
}

bool DeviceHeap::isUsable(std::uint64_t address, std::uint64_t bytes) {
  if (!holds(address))
    return true;
  std::lock_guard lock(mutex_);
  auto behind = blocks_.used.upper_bound(address);
  if (behind == blocks_.used.begin())
    return false;
  auto [first, size] = *std::prev(behind);
  return address - first <= size && bytes <= size - (address - first);
}

} // namespace kiln::sim
