// FakeCublas: what the fake cuBLAS saw, and what it is told to do; reached
// through its symbol `fakeCublas`.
#pragma once

#include "verify/CublasLt.h"

#include <vector>

namespace kiln::test {

struct FakeCublas {
  cublas::cublasStatus_t status = cublas::CUBLAS_STATUS_SUCCESS;

  struct Group {
    cublas::cublasOperation_t a, b;
    int m, n, k, lda, ldb, ldc, size;
    float alpha, beta;
    const void *pointers[3]; ///< A, B, C
    bool operator==(const Group &) const = default;
  };
  std::vector<std::vector<Group>> calls;
  cublas::cudaDataType type, out;
  int live = 0;
};

} // namespace kiln::test
