// TouchLog: which blocks of a buffer were touched since it was begun, and what
// those that were written held before.
//
// What it costs is proportional to what is touched, but for a byte for each
// block: a buffer that nobody writes is not copied.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace kiln::sim {

struct Region;

class TouchLog {
public:
  static constexpr std::size_t kBlockBytes = 4096;

  explicit TouchLog(std::size_t bytes);

  /// Some bytes are about to be read or written; safe from many threads.
  void note(const Region &region, std::size_t offset, std::size_t bytes,
            bool isWrite);
  /// Put back what was written.
  void restore(Region &region) const;
  bool isTouched(std::size_t block) const {
    return states_[block].load(std::memory_order_relaxed) != 0;
  }
  bool isWritten(std::size_t block) const {
    return states_[block].load(std::memory_order_relaxed) & kKept;
  }
  std::size_t blockCount() const { return count_; }
  /// The bytes of a block as they were.
  const std::uint8_t *data(const Region &region, std::size_t block) const;
  /// Likewise which of them were written, 64 to a word.
  const std::uint64_t *valid(const Region &region, std::size_t block) const;

private:
  static constexpr std::uint8_t kRead = 1, kKept = 2;
  struct Kept {
    std::vector<std::uint8_t> data;
    std::vector<std::uint64_t> valid;
  };
  void keep(const Region &region, std::size_t block);
  const Kept *find(std::size_t block) const;

  std::size_t count_;
  std::unique_ptr<std::atomic<std::uint8_t>[]> states_;
  mutable std::mutex mutex_; ///< of what follows
  std::map<std::size_t, Kept> kept_;
};

} // namespace kiln::sim
