// host_memory.h: how much of this machine's memory a program may take.
//
// Linux promises more memory than it has and kills whoever uses it. What a
// stranger's program, launch file or command line can make large is therefore
// counted here before it is allocated, and refused with a sentence where it is
// too much.
#pragma once

#include <kiln/base/export.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace KILN_API kiln {

/// A share of the memory, given back when it dies.
class HostMemory {
public:
  HostMemory() = default;
  HostMemory(HostMemory &&other) noexcept
      : bytes_(std::exchange(other.bytes_, 0)) {}
  HostMemory &operator=(HostMemory &&other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~HostMemory();

  /// Take so many bytes more. Throws RuntimeError that names `what` they are
  /// for, where all shares together would be too large.
  void take(std::uint64_t bytes, std::string_view what);
  /// "not enough memory for a buffer, which needs ..."
  [[noreturn]] static void fail(std::uint64_t bytes, std::string_view what);

  /// The most that all shares may be: 7/8 of the machine's memory, or of what
  /// its control group leaves this process.
  static std::uint64_t limit_bytes();

private:
  std::uint64_t bytes_ = 0;
};

/// `bytes` bytes, each of them `fill`. They are not counted. Throws
/// RuntimeError that names `what` they are for where there are not so many.
std::vector<std::byte> host_bytes(std::string_view what, std::size_t bytes,
                                  std::byte fill = {});

} // namespace kiln
