// MemPool: numbers of pools.
#include "cudart/MemPool.h"
#include "cudart/CudaError.h"
#include "cudart/Handles.h"

#include <algorithm>
#include <fmt/format.h>

namespace kiln::cudart {

/// Pools take memory of the device in pieces of so many bytes.
static constexpr std::uint64_t kPiece = 2 << 20;

MemPool &MemPool::standard() {
  static MemPool *pool = [] {
    auto *made = new MemPool; // NOLINT: never destroyed
    Handles::get().add(made, Handles::Kind::pool);
    return made;
  }();
  return *pool;
}

MemPool &MemPool::graphs() {
  static auto *pool = new MemPool; // NOLINT: never destroyed
  return *pool;
}

MemPool *&MemPool::current() {
  static MemPool *pool = &standard();
  return pool;
}

void MemPool::adjust() {
  std::uint64_t least = (used_ + kPiece - 1) / kPiece * kPiece;
  reserved_ = std::max(reserved_, least);
  usedMost_ = std::max(usedMost_, used_);
  reservedMost_ = std::max(reservedMost_, reserved_);
}

void MemPool::take(std::size_t bytes) {
  std::lock_guard lock(mutex_);
  if (maxBytes && (used_ > maxBytes || bytes > maxBytes - used_))
    throw CudaError(kOutOfMemory,
                    fmt::format("the pool has at most {} bytes, {} of which are "
                                "in use, and was asked for {} more",
                                maxBytes, used_, bytes));
  used_ += bytes;
  adjust();
}

void MemPool::giveBack(std::size_t bytes) {
  std::lock_guard lock(mutex_);
  used_ -= std::min<std::uint64_t>(bytes, used_);
}

void MemPool::trim(std::size_t bytes) {
  std::lock_guard lock(mutex_);
  reserved_ = std::min<std::uint64_t>(reserved_, bytes);
  adjust();
}

namespace {
enum Attribute : int { // cudaMemPoolAttr
  firstReuse = 1,
  lastReuse = 3,
  releaseThreshold = 4,
  reservedCurrent = 5,
  reservedHigh = 6,
  usedCurrent = 7,
  usedHigh = 8
};
} // namespace

bool MemPool::get(int attribute, void *value) {
  std::lock_guard lock(mutex_);
  if (attribute >= firstReuse && attribute <= lastReuse) {
    *static_cast<int *>(value) = reuse_[attribute - firstReuse];
    return true;
  }
  if (attribute < releaseThreshold || attribute > usedHigh)
    return false;
  const std::uint64_t values[] = {threshold_, reserved_, reservedMost_, used_,
                                  usedMost_};
  *static_cast<std::uint64_t *>(value) = values[attribute - releaseThreshold];
  return true;
}

bool MemPool::set(int attribute, const void *value) {
  std::lock_guard lock(mutex_);
  if (attribute >= firstReuse && attribute <= lastReuse) {
    reuse_[attribute - firstReuse] = *static_cast<const int *>(value) != 0;
    return true;
  }
  std::uint64_t number = *static_cast<const std::uint64_t *>(value);
  if (attribute == releaseThreshold) {
    threshold_ = number;
    return true;
  }
  // High-water marks can be put back, to what there is.
  if (number != 0 || (attribute != reservedHigh && attribute != usedHigh))
    return false;
  (attribute == usedHigh ? usedMost_ : reservedMost_) =
      attribute == usedHigh ? used_ : reserved_;
  return true;
}

} // namespace kiln::cudart
