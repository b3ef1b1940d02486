// FakeCuda: what the fake driver saw, and what it is told to do.
//
// The fake is a shared library of its own, loaded by path like the real one; a
// test reaches this state through its symbol `fakeCuda`.
#pragma once

#include "runtime/CudaDriver.h"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace kiln::test {

struct FakeCuda {
  /// What to do.
  std::string failCall; ///< the symbol that fails
  cuda::CUresult failResult = cuda::CUDA_ERROR_INVALID_VALUE;
  int devices = 1;
  std::map<int, int> attributes; ///< of the GPU, other than those of an H200
  std::string jitLog;                      ///< of a module that fails to load
  std::vector<std::size_t> parameterBytes; ///< of the next launch

  /// What was seen.
  struct TensorMapArguments {
    cuda::CUtensorMapDataType type;
    void *address;
    std::vector<std::uint64_t> dims, strides;
    std::vector<std::uint32_t> box, elementStrides;
    cuda::CUtensorMapInterleave interleave;
    cuda::CUtensorMapSwizzle swizzle;
    cuda::CUtensorMapL2promotion l2;
    cuda::CUtensorMapFloatOOBfill oob;
  };
  struct Launch {
    cuda::CUlaunchConfig config;
    std::vector<cuda::CUlaunchAttribute> attributes;
    std::vector<std::vector<std::byte>> parameters;
  };
  std::vector<std::string> calls;
  std::map<std::uint64_t, std::vector<char>> memory; ///< not yet freed
  int streams = 0, events = 0, modules = 0;          ///< not yet destroyed
  int registered = 0;   ///< pieces of the host's memory
  int contexts = 0;     ///< retained
  int contextDepth = 0; ///< pushed, not popped
  std::vector<std::string> moduleTexts;
  std::map<int, int> functionAttributes;
  std::vector<TensorMapArguments> tensorMaps;
  std::vector<Launch> launches;

  int count(const std::string &symbol) const {
    int n = 0;
    for (const std::string &call : calls)
      n += call == symbol;
    return n;
  }
};

} // namespace kiln::test
