// Recycled: memory that a thread takes again soon after it has given it back.
//
// CTAs come and go by the million and look all alike: each has warps,
// registers, shared memory and shadows of the same sizes as the one before it.
// The blocks stay with the thread that gives them back, on a shelf for each
// size, so that the next CTA costs no trip to the allocator of the process.
#pragma once

#include "kiln/base/export.h"

#include <cstddef>
#include <limits>
#include <new>

namespace KILN_API kiln {

/// Uninitialised, aligned to a line of the host's cache. Throws std::bad_alloc.
void *takeRecycled(std::size_t bytes);
/// `bytes`: as it was taken, by any thread.
void giveRecycled(void *block, std::size_t bytes) noexcept;

/// For containers whose elements are that memory.
template <typename T> struct RecycledAllocator {
  using value_type = T;

  RecycledAllocator() = default;
  template <typename U> RecycledAllocator(const RecycledAllocator<U> &) {}

  T *allocate(std::size_t count) {
    if (count > std::numeric_limits<std::size_t>::max() / sizeof(T))
      throw std::bad_alloc();
    return static_cast<T *>(takeRecycled(count * sizeof(T)));
  }
  void deallocate(T *data, std::size_t count) noexcept {
    giveRecycled(data, count * sizeof(T));
  }
  template <typename U> bool operator==(const RecycledAllocator<U> &) const {
    return true;
  }
};

/// For classes whose objects are: derive from it.
struct Recycled {
  static void *operator new(std::size_t bytes) { return takeRecycled(bytes); }
  static void operator delete(void *block, std::size_t bytes) noexcept {
    giveRecycled(block, bytes);
  }
};

} // namespace kiln
