// Memory: the address spaces of the machine, with bounds and validity.
//
// Every byte is known to be written or not: one bit per byte beside the data.
// Reading an unwritten byte is no finding by itself; it poisons the register
// that receives it (Warp::poison), and what a poisoned value reaches is.
#pragma once

#include "kiln/run/host_memory.h"
#include "sim/machine/memory/DeviceHeap.h"
#include "sim/machine/memory/TouchLog.h"
#include "sim/machine/memory/ZeroPages.h"
#include "sim/program/AddressSpaces.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace kiln::sim {

/// One bit per byte: has it been written?
class ValidBits {
public:
  /// `isWritten`: all of them have been. Either way no page is touched.
  explicit ValidBits(std::size_t bytes = 0, bool isWritten = false)
      : words_((bytes + 63) / 64), flip_(isWritten ? ~std::uint64_t(0) : 0) {}

  /// Mark bytes as written; safe from many threads.
  void set(std::size_t offset, std::size_t bytes) {
    if (!isInOneWord(offset, bytes) || !all(offset, bytes))
      setSlowly(offset, bytes);
  }
  bool all(std::size_t offset, std::size_t bytes) const {
    if (!isInOneWord(offset, bytes))
      return allSlowly(offset, bytes);
    std::uint64_t mask = ((std::uint64_t(1) << bytes) - 1) << offset % 64;
    return (word(offset / 64) & mask) == mask;
  }
  /// Which of up to 8 bytes are not: all ones in each.
  std::uint64_t unwritten(std::size_t offset, std::size_t bytes) const;
  /// Mark up to 8 bytes, those of `unwritten` (ones in each) as not written.
  void put(std::size_t offset, std::size_t bytes, std::uint64_t unwritten);
  void clear(std::size_t offset, std::size_t bytes);
  /// Where the first of them that is not written was read first, before it was
  /// put here: a number of the cluster's (Cluster::origins); 0: nowhere that is
  /// known. Not of global memory, which clusters share.
  std::uint32_t origin(std::size_t offset, std::size_t bytes) const;
  void setOrigin(std::size_t offset, std::size_t bytes, std::uint32_t origin);
  /// All of them, 64 to a word, each bit as it is kept: what differs from
  /// `flip`.
  std::uint64_t *words() { return words_.data(); }
  const std::uint64_t *words() const { return words_.data(); }
  std::uint64_t flip() const { return flip_; }

private:
  /// Most ranges are: what a lane or a chunk of a copy touches.
  static bool isInOneWord(std::size_t offset, std::size_t bytes) {
    return bytes - 1 < 63 && offset % 64 + bytes <= 64;
  }
  /// Others may set bits meanwhile.
  std::uint64_t word(std::size_t i) const {
    return __atomic_load_n(&words_[i], __ATOMIC_RELAXED) ^ flip_;
  }
  /// Make bits of a word one or zero; others may do so too.
  void change(std::size_t i, std::uint64_t mask, bool isWritten) {
    std::atomic_ref<std::uint64_t> target(words_[i]);
    if (isWritten == (flip_ == 0))
      target.fetch_or(mask, std::memory_order_relaxed);
    else
      target.fetch_and(~mask, std::memory_order_relaxed);
  }
  void setSlowly(std::size_t offset, std::size_t bytes);
  bool allSlowly(std::size_t offset, std::size_t bytes) const;

  std::vector<std::uint64_t, ZeroAllocator<std::uint64_t>> words_;
  std::uint64_t flip_; ///< what a word of zeros stands for
  /// By byte / 4; mostly there are none.
  std::unordered_map<std::size_t, std::uint32_t> origins_;
};

/// A buffer in global memory.
struct Region {
  std::string name;
  std::uint64_t base = 0;
  std::size_t bytes = 0;
  std::shared_ptr<std::uint8_t[]> data; ///< the host's own where it is shared
  ValidBits valid;
  bool isReadOnly = false; ///< a constant variable
  HostMemory share;        ///< of the host's memory
  /// Of those who want to know what is touched, or to put it back.
  std::vector<std::shared_ptr<TouchLog>> logs;

  /// Every byte is announced before it is read or written.
  void touch(std::uint64_t address, std::size_t size, bool isWrite) const {
    for (const auto &log : logs)
      log->note(*this, address - base, size, isWrite);
  }
  std::uint8_t *at(std::uint64_t address) {
    return data.get() + (address - base);
  }
};

/// What fresh memory holds; either way it costs nothing until it is touched.
enum class Fresh : std::uint8_t {
  zero,
  spoilt, ///< NaN in every float type (SpoiltPages)
};

/// All buffers of a device. Allocation takes a lock; finding one does not, and
/// must not run while another thread allocates or frees: launches do neither.
class GlobalMemory {
public:
  /// Throws RuntimeError where the host has not so much memory.
  Region &allocate(std::size_t bytes, const std::string &name,
                   Fresh fresh = Fresh::zero);
  /// The same at an address (kiln/sim.h). Throws UserError too.
  Region &allocateAt(std::uint64_t base, std::size_t bytes,
                     const std::string &name, Fresh fresh = Fresh::zero);
  /// Memory of the host that kernels use at its own address. What is in it
  /// counts as written: nobody sees the host do so. Throws UserError where it
  /// overlaps what is there.
  Region &share(void *data, std::size_t bytes, const std::string &name);
  void free(std::uint64_t base);
  /// The same by the program, which may yet use it: what lies there then is
  /// known to be freed.
  void retire(std::uint64_t base);
  /// Make it usable again, with undefined contents; nothing where it is.
  void revive(std::uint64_t base, std::size_t bytes);
  bool isFreed(std::uint64_t address) const;
  /// The region that holds `address`, or the nearest below it; null: none.
  Region *find(std::uint64_t address);
  /// Changes whenever a buffer comes or goes.
  std::uint64_t version() const { return version_; }
  /// "buffer 2 (4096 bytes at 0x7000...)", for messages about an address.
  std::string describe(std::uint64_t address);
  const std::map<std::uint64_t, std::unique_ptr<Region>> &regions() const {
    return regions_;
  }
  /// Between buffers and memory of the host that is none: what was not written
  /// is not so afterwards.
  void copy(std::uint64_t to, std::uint64_t from, std::size_t bytes);
  /// `count` elements of 1, 2 or 4 bytes.
  void fill(std::uint64_t to, std::uint32_t value, int elementBytes,
            std::size_t count);
  /// Throws UserError where a copy leaves the buffer that it begins in, or
  /// begins in none at an address that is not the host's.
  void checkCopy(std::uint64_t to, std::uint64_t from, std::size_t bytes);
  /// Bytes of the host that say which bytes were written.
  std::uint64_t shadowBytes() const;
  /// Make the heap of kernels' malloc, unless there is one; before a launch.
  void makeHeap();
  DeviceHeap *heap() { return heap_.get(); } ///< null: no kernel has one

private:
  /// A buffer that has a part of that range; null: none.
  Region *overlapping(std::uint64_t base, std::size_t bytes);
  Region &add(std::uint64_t base, std::size_t bytes, const std::string &name,
              Fresh fresh);
  /// The buffer at an address; null: memory of the host.
  Region *holding(std::uint64_t address);

  std::mutex mutex_;
  std::map<std::uint64_t, std::unique_ptr<Region>> regions_;
  /// Freed by the program, the latest ones: where they began.
  struct Freed {
    std::string name;
    std::size_t bytes;
  };
  const Freed *freedAt(std::uint64_t address, std::uint64_t *base) const;
  std::map<std::uint64_t, Freed> freed_;
  std::uint64_t next_ = kGlobalBase;
  int count_ = 0;
  std::atomic<std::uint64_t> version_{1};
  std::unique_ptr<DeviceHeap> heap_;
};

/// The buffers that instructions were in last.
class RecentRegions {
public:
  /// The buffer that has all of those bytes; null: none. `slot`: any number,
  /// mostly the same for the same buffer.
  Region *find(GlobalMemory &memory, std::uint64_t address, std::size_t bytes,
               std::size_t slot) {
    if (version_ != memory.version()) {
      regions_ = {};
      version_ = memory.version();
    }
    Region *&region = regions_[slot % regions_.size()];
    if (!region || !isWithin(*region, address, bytes))
      region = memory.find(address);
    return region && isWithin(*region, address, bytes) ? region : nullptr;
  }

private:
  static bool isWithin(const Region &region, std::uint64_t address,
                       std::size_t bytes) {
    return address >= region.base &&
           isInside(address - region.base, bytes, region.bytes);
  }

  std::array<Region *, 16> regions_{};
  std::uint64_t version_ = 0;
};

} // namespace kiln::sim
