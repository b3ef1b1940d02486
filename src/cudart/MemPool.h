// MemPool: memory that is allocated and freed in the order of streams.
//
// A pool counts what its program takes from it; the memory itself is the
// device's, and what has been freed is known as freed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

namespace kiln::cudart {

class MemPool {
public:
  /// For as long as the process lasts.
  static MemPool &standard();
  /// Of the memory that graphs allocate while they run.
  static MemPool &graphs();
  /// That cudaMallocAsync takes from.
  static MemPool *&current();

  void take(std::size_t bytes);
  void giveBack(std::size_t bytes);
  /// Keep at least so many bytes of what is not in use.
  void trim(std::size_t bytes);

  /// By their numbers in CUDA (cudaMemPoolAttr): false where there is none of
  /// that number, or where it cannot be set so.
  bool get(int attribute, void *value);
  bool set(int attribute, const void *value);

  std::uint64_t maxBytes = 0; ///< 0: no limit

private:
  void adjust();

  std::mutex mutex_;
  int reuse_[3] = {1, 1, 1};
  std::uint64_t threshold_ = 0; ///< bytes to keep when the host waits
  std::uint64_t used_ = 0, usedMost_ = 0, reserved_ = 0, reservedMost_ = 0;
};

} // namespace kiln::cudart
