// FakeCublasLt: what the fake cuBLASLt saw, and what it is told to do.
//
// A shared library of its own, like the fake driver beside it; a test reaches
// this state through its symbol `fakeCublasLt`.
#pragma once

#include "verify/CublasLt.h"

#include <map>
#include <string>
#include <vector>

namespace kiln::test {

struct FakeCublasLt {
  /// What to do.
  std::string failCall; ///< the symbol that fails
  cublas::cublasStatus_t failStatus = cublas::CUBLAS_STATUS_INVALID_VALUE;
  int ways = 3; ///< that the heuristics know

  /// What was seen.
  struct Layout {
    cublas::cudaDataType type;
    std::uint64_t rows, cols;
    std::int64_t leading;
    std::map<int, std::int64_t> attributes;
  };
  struct Operation {
    cublas::cublasComputeType_t compute;
    cublas::cudaDataType scale;
    std::map<int, std::int64_t> attributes;
  };
  struct Matmul {
    Operation operation;
    Layout a, b, c, d;
    const void *pointers[4]; ///< A, B, C, D
    std::uint32_t alpha, beta;
    std::uint64_t algo;
    std::size_t workspaceBytes;
    void *stream;
  };
  std::vector<Matmul> matmuls;
  std::uint64_t preferredWorkspaceBytes = 0;
  int live = 0; ///< objects not yet destroyed
};

} // namespace kiln::test
