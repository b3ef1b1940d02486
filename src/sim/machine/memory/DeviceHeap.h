// DeviceHeap: the memory that malloc of kernels takes from.
//
// One buffer of the device, as large as CUDA's is unless somebody asks for
// more. Blocks are given out one behind the other, and memory that was given
// back is used again only when there is no other: so that what is wrong with a
// block that is gone is seen. It lives as long as the device, as blocks do.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

namespace kiln::sim {

class DeviceHeap {
public:
  /// cudaLimitMallocHeapSize, as the driver has it.
  static constexpr std::uint64_t kBytes = 8 << 20;

  explicit DeviceHeap(std::uint64_t base)
      : base_(base), blocks_{base, {}, {}} {}

  /// The address of a block, aligned to 16 bytes; 0: there is no room.
  std::uint64_t allocate(std::uint64_t bytes);
  /// False where no block that is in use begins there.
  bool free(std::uint64_t address);
  /// Whether those bytes are of one block that is in use, or of no heap.
  bool isUsable(std::uint64_t address, std::uint64_t bytes);
  bool holds(std::uint64_t address) const {
    return address >= base_ && address - base_ < kBytes;
  }

  /// Who has what, to be put back.
  struct Blocks {
    std::uint64_t next = 0; ///< nobody has had anything from here on
    std::map<std::uint64_t, std::uint64_t> used;        ///< address -> bytes
    std::multimap<std::uint64_t, std::uint64_t> unused; ///< bytes -> address
  };
  Blocks blocks() {
    std::lock_guard lock(mutex_);
    return blocks_;
  }
  void put(const Blocks &blocks) {
    std::lock_guard lock(mutex_);
    blocks_ = blocks;
  }

private:
  std::mutex mutex_;
  std::uint64_t base_;
  Blocks blocks_;
};

} // namespace kiln::sim
