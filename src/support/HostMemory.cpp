// HostMemory: one sum for the process, and the limit it is held against.
#include "kiln/run/host_memory.h"
#include "support/Error.h"
#include "support/InputFile.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <new>
#include <stdexcept>
#include <unistd.h>

namespace kiln {

static std::atomic<std::uint64_t> taken{0};

/// The memory of the machine.
static std::uint64_t physicalBytes() {
  long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGE_SIZE);
  if (pages <= 0 || bytes <= 0)
    return ~std::uint64_t(0);
  return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(bytes);
}

std::uint64_t HostMemory::limit_bytes() {
  static const std::uint64_t limit = [] {
    std::uint64_t least = physicalBytes();
    // Of a container; the files say "max" where there is no limit.
    for (const char *path : {"/sys/fs/cgroup/memory.max",
                             "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
      std::string text;
      std::uint64_t bytes = 0;
      if (readFile(path, text, 64) == 0 &&
          std::from_chars(text.data(), text.data() + text.size(), bytes).ec ==
              std::errc() &&
          bytes > 0)
        least = std::min(least, bytes);
    }
    return least / 8 * 7;
  }();
  return limit;
}

void HostMemory::fail(std::uint64_t bytes, std::string_view what) {
  runtimeError("not enough memory for {}, which needs {} bytes: {} are taken, "
               "and {} in all may be on this machine",
               what, bytes, taken.load(), limit_bytes());
}

void HostMemory::take(std::uint64_t bytes, std::string_view what) {
  std::uint64_t limit = limit_bytes();
  if (bytes > limit)
    fail(bytes, what);
  std::uint64_t before = taken.fetch_add(bytes, std::memory_order_relaxed);
  if (before <= limit - bytes) {
    bytes_ += bytes;
    return;
  }
  taken.fetch_sub(bytes, std::memory_order_relaxed);
  fail(bytes, what);
}

HostMemory::~HostMemory() {
  taken.fetch_sub(bytes_, std::memory_order_relaxed);
}

std::vector<std::byte> host_bytes(std::string_view what, std::size_t bytes,
                                  std::byte fill) {
  try {
    return std::vector<std::byte>(bytes, fill);
  } catch (const std::bad_alloc &) {
  } catch (const std::length_error &) {
  }
  HostMemory::fail(bytes, what);
}

} // namespace kiln
