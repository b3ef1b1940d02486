// run_status.h: what a program under `kiln run` tells the command, however it
// ends.
//
// The command makes a file of this size and names it in KILN_STATUS; the CUDA
// libraries of Kiln map it and count. A program that never loads one of them
// leaves it as it was.
#pragma once

#include <kiln/base/export.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace KILN_API kiln {

struct RunStatus {
  static constexpr std::uint64_t kMagic = 0x4b696c6e52756e34;

  std::atomic<std::uint64_t> magic{0}; ///< kMagic: a library was loaded
  std::atomic<std::uint64_t> launches{0};
  std::atomic<std::uint64_t> checked{0};
  std::atomic<std::uint64_t> errors{0};    ///< findings of that grade
  std::atomic<std::uint64_t> warnings{0};  ///< likewise
  std::atomic<std::uint64_t> ended{0};     ///< launches that an error ended
  std::atomic<std::uint64_t> refused{0};   ///< launches that were not begun
  std::atomic<std::uint64_t> failed{0};    ///< calls without a result to ask
  std::atomic<std::uint64_t> unwritten{0}; ///< files that were not written
  std::atomic<std::uint64_t> captured{0};  ///< launches, for `kiln sim`
  /// Launches that were not run: they would do what an earlier one did.
  std::atomic<std::uint64_t> repeated{0};
  /// Calls of libraries that ran on the host (cuBLAS).
  std::atomic<std::uint64_t> host_calls{0};
  /// Calls of functions that Kiln does not have, which returned an error.
  std::atomic<std::uint64_t> unsupported{0};
  /// Their names, each once, as far as there is room: "cudaA, cudaB".
  char unsupported_names[1024] = {};

  /// Count such a call; two threads must not do so at once.
  void count_unsupported(std::string_view name);

  /// "2 launches, 2 checked: 1 error, 0 warnings", and what went wrong.
  std::string to_string() const;
};

} // namespace kiln
