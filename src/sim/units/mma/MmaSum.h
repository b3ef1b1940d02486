// MmaSum: what mma and wmma add up, type by type.
#pragma once

#include "ptx/Ast.h"

#include <cmath>
#include <cstdint>

namespace kiln::sim {

struct MmaSizes {
  int m = 0, n = 0, k = 0;
  ptx::ScalarType typeA = ptx::ScalarType::f16, typeB = ptx::ScalarType::f16;
  ptx::ScalarType typeD = ptx::ScalarType::f32;
  bool isFast = false; ///< SumRule::isInOrder
};

/// sums[m][n] += a[m][k] * b[k][n] as an H200 adds them; an f16 is rounded
/// already. `isAbsent` says of a sparse A what is not there.
void addProducts(const MmaSizes &sizes, const float *a, const float *b,
                 float *sums, const std::uint8_t *isAbsent = nullptr);

/// Whole numbers are exact, and of doubles each product is added in its turn.
template <typename T>
void addProducts(const MmaSizes &sizes, const T *a, const T *b, T *sums) {
  for (int row = 0; row < sizes.m; ++row)
    for (int inner = 0; inner < sizes.k; ++inner)
      for (int column = 0; column < sizes.n; ++column) {
        T &sum = sums[row * sizes.n + column];
        T x = a[row * sizes.k + inner], y = b[inner * sizes.n + column];
        if constexpr (std::is_same_v<T, double>)
          sum = std::fma(x, y, sum);
        else
          sum += x * y;
      }
}

} // namespace kiln::sim
