// OpenBlas: products on the host, by OpenBLAS where it is installed.
#pragma once

#include <cstdint>

namespace kiln::cublas {

/// C[m,n] = op(A)[m,k] * op(B)[k,n], column by column; the leading dimensions are
/// those of A and B as they are stored.
struct Product {
  std::int64_t m, n, k;
  const double *a;
  std::int64_t lda;
  bool isATransposed;
  const double *b;
  std::int64_t ldb;
  bool isBTransposed;
  double *c;
};
void multiply(const Product &product);

} // namespace kiln::cublas
