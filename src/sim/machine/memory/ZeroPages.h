// ZeroPages: memory that is zero, and costs nothing until it is touched.
//
// A kernel may declare six gigabytes and use one byte of them. What calloc takes
// from the system in one piece is zero already, a page at a time as it is used.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <limits>
#include <memory>
#include <new>
#include <utility>

namespace kiln::sim {

/// For containers that keep the size they begin with: their elements are zero
/// without being written.
template <typename T> struct ZeroAllocator {
  using value_type = T;

  ZeroAllocator() = default;
  template <typename U> ZeroAllocator(const ZeroAllocator<U> &) {}

  T *allocate(std::size_t count) {
    if (count > std::numeric_limits<std::size_t>::max() / sizeof(T))
      throw std::bad_alloc();
    if (void *data = std::calloc(count ? count : 1, sizeof(T)))
      return static_cast<T *>(data);
    throw std::bad_alloc();
  }
  void deallocate(T *data, std::size_t) { std::free(data); }
  template <typename U> void construct(U *) {}
  template <typename U, typename... Args>
  void construct(U *at, Args &&...args) {
    ::new (at) U(std::forward<Args>(args)...);
  }
  template <typename U> bool operator==(const ZeroAllocator<U> &) const {
    return true;
  }
};

/// Throws std::bad_alloc.
inline std::shared_ptr<unsigned char[]> zeroBytes(std::size_t bytes) {
  return {ZeroAllocator<unsigned char>().allocate(bytes), std::free};
}

} // namespace kiln::sim
