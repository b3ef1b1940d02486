// Recycled: a thread's shelves of blocks.
#include "support/limits/Recycled.h"

#include <array>
#include <bit>

// A block that is taken again would hide from the sanitizer who still uses it.
#if defined(__SANITIZE_ADDRESS__)
#define KILN_RECYCLES 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KILN_RECYCLES 0
#endif
#endif
#ifndef KILN_RECYCLES
#define KILN_RECYCLES 1
#endif

namespace kiln {

static constexpr std::align_val_t kAlignment{64};

#if KILN_RECYCLES
/// The least block, and the largest that is kept.
static constexpr std::size_t kLeast = 64, kLargest = std::size_t(1) << 20;
/// Sizes from one power of two to the next.
static constexpr std::size_t kSteps = 4;
static constexpr std::size_t kShelves =
    (std::countr_zero(kLargest) - std::countr_zero(kLeast)) * kSteps + 1;
/// What a thread keeps at most.
static constexpr std::size_t kMostBytes = std::size_t(16) << 20;

namespace {
struct Size {
  std::size_t shelf, bytes;
};
} // namespace

/// The least size of a shelf that has room for so many.
static Size sizeOf(std::size_t bytes) {
  if (bytes <= kLeast)
    return {0, kLeast};
  std::size_t floor = std::bit_floor(bytes - 1), step = floor / kSteps;
  std::size_t above = (bytes - floor + step - 1) / step;
  return {(std::countr_zero(floor) - std::countr_zero(kLeast)) * kSteps + above,
          floor + above * step};
}

namespace {
class Shelves {
public:
  Shelves() { own_ = this; }
  ~Shelves() {
    own_ = nullptr;
    for (Block *&shelf : shelves_)
      while (Block *block = shelf) {
        shelf = block->next;
        ::operator delete(block, kAlignment);
      }
  }
  /// Null: this thread is about to end.
  static Shelves *own() {
    thread_local bool isMade = false;
    if (!isMade) {
      isMade = true;
      thread_local Shelves shelves;
    }
    return own_;
  }

  /// Null: there is none.
  void *take(const Size &size) {
    Block *&shelf = shelves_[size.shelf];
    if (!shelf)
      return nullptr;
    kept_ -= size.bytes;
    Block *block = shelf;
    shelf = block->next;
    return block;
  }
  /// False: there are enough.
  bool give(void *block, const Size &size) {
    if (kept_ + size.bytes > kMostBytes)
      return false;
    kept_ += size.bytes;
    Block *&shelf = shelves_[size.shelf];
    shelf = new (block) Block{shelf};
    return true;
  }

private:
  struct Block {
    Block *next;
  };
  std::array<Block *, kShelves> shelves_{};
  std::size_t kept_ = 0;
  /// Without a destructor: what dies behind the shelves still asks.
  static thread_local Shelves *own_;
};
thread_local Shelves *Shelves::own_ = nullptr;
} // namespace
#endif

void *takeRecycled(std::size_t bytes) {
#if KILN_RECYCLES
  if (bytes <= kLargest) {
    Size size = sizeOf(bytes);
    if (Shelves *shelves = Shelves::own())
      if (void *block = shelves->take(size))
        return block;
    bytes = size.bytes;
  }
#endif
  return ::operator new(bytes, kAlignment);
}

void giveRecycled(void *block, std::size_t bytes) noexcept {
#if KILN_RECYCLES
  if (block && bytes <= kLargest)
    if (Shelves *shelves = Shelves::own();
        shelves && shelves->give(block, sizeOf(bytes)))
      return;
#endif
  ::operator delete(block, kAlignment);
}

} // namespace kiln
