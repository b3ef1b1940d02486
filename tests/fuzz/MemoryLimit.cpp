// MemoryLimit: std::bad_alloc where a process holds more than it may.
//
// The address sanitizer ends a process that asks for too much, and reserves too
// much of the address space for setrlimit. With these in front of its malloc an
// input that asks for terabytes gets what a user gets on a small machine.
#include <atomic>
#include <cstdlib>
#include <malloc.h>
#include <new>

static constexpr std::size_t kLimitBytes = std::size_t(512) << 20;
static std::atomic<std::size_t> heldBytes{0};

static void *allocate(std::size_t bytes, std::size_t align) {
  if (bytes > kLimitBytes || heldBytes + bytes > kLimitBytes)
    throw std::bad_alloc();
  void *memory = align
                     ? aligned_alloc(align, (bytes + align - 1) / align * align)
                     : std::malloc(bytes ? bytes : 1);
  if (!memory)
    throw std::bad_alloc();
  heldBytes += malloc_usable_size(memory);
  return memory;
}

static void release(void *memory) {
  if (memory)
    heldBytes -= malloc_usable_size(memory);
  std::free(memory);
}

void *operator new(std::size_t bytes) { return allocate(bytes, 0); }
void *operator new[](std::size_t bytes) { return allocate(bytes, 0); }
void *operator new(std::size_t bytes, std::align_val_t align) {
  return allocate(bytes, static_cast<std::size_t>(align));
}
void *operator new[](std::size_t bytes, std::align_val_t align) {
  return allocate(bytes, static_cast<std::size_t>(align));
}
void *operator new(std::size_t bytes, const std::nothrow_t &) noexcept {
  try {
    return allocate(bytes, 0);
  } catch (const std::bad_alloc &) {
    return nullptr;
  }
}
void *operator new[](std::size_t bytes, const std::nothrow_t &tag) noexcept {
  return operator new(bytes, tag);
}
void operator delete(void *memory) noexcept { release(memory); }
void operator delete[](void *memory) noexcept { release(memory); }
void operator delete(void *memory, std::size_t) noexcept { release(memory); }
void operator delete[](void *memory, std::size_t) noexcept { release(memory); }
void operator delete(void *memory, const std::nothrow_t &) noexcept {
  release(memory);
}
void operator delete[](void *memory, const std::nothrow_t &) noexcept {
  release(memory);
}
void operator delete(void *memory, std::align_val_t) noexcept {
  release(memory);
}
void operator delete[](void *memory, std::align_val_t) noexcept {
  release(memory);
}
void operator delete(void *memory, std::size_t, std::align_val_t) noexcept {
  release(memory);
}
void operator delete[](void *memory, std::size_t, std::align_val_t) noexcept {
  release(memory);
}
