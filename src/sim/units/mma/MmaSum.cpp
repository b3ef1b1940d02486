// MmaSum: one aligned sum for all of K, but for eight-bit floats.
//
// Hopper has no mma of eight-bit floats: ptxas makes f16 of them, and two
// products of half of K each, the first of the elements 0 and 1 of every four,
// the second of 2 and 3. They begin at zero, and C is added behind them.
#include "sim/units/mma/MmaSum.h"
#include "sim/units/matrix/AlignedSum.h"
#include "support/Half.h"

#include <vector>

namespace kiln::sim {

static float leastNormal(ptx::ScalarType type) {
  switch (type) {
  case ptx::ScalarType::f16:
    return leastNormal(OperandType::f16);
  case ptx::ScalarType::e4m3:
    return leastNormal(OperandType::e4m3);
  case ptx::ScalarType::e5m2:
    return leastNormal(OperandType::e5m2);
  default:
    return leastNormal(OperandType::bf16);
  }
}

static void roundHalves(int count, float *sums) {
  for (int i = 0; i < count; ++i)
    sums[i] = halfToFloat(roundToHalf(sums[i]));
}

/// All of K at once.
static void addAtOnce(const MmaSizes &sizes, float leastA, float leastB,
                      const float *a, const float *b, float *sums,
                      const std::uint8_t *isAbsent) {
  bool isHalf = sizes.typeD == ptx::ScalarType::f16;
  addAligned({.isRoundedAfter = isHalf,
              .leastX = leastA,
              .leastY = leastB,
              .isInOrder = sizes.isFast && !isAbsent},
             {.lines = sizes.m,
              .columns = sizes.n,
              .k = sizes.k,
              .x = a,
              .lineStep = sizes.k,
              .step = 1,
              .y = b,
              .pitch = sizes.n,
              .isAbsent = isAbsent},
             sums, sizes.n);
  if (isHalf)
    roundHalves(sizes.m * sizes.n, sums);
}

static void addAsHalves(MmaSizes sizes, const float *a, const float *b,
                        float *sums) {
  int k = sizes.k, n = sizes.n;
  sizes.k /= 2;
  std::vector<float> halfA(sizes.m * sizes.k), halfB(sizes.k * n);
  std::vector<float> products(sizes.m * n);
  float least = leastNormal(ptx::ScalarType::f16);
  for (int half = 0; half < 2; ++half) {
    for (int i = 0; i < sizes.k; ++i) {
      int from = i / 2 * 4 + 2 * half + i % 2;
      for (int row = 0; row < sizes.m; ++row)
        halfA[row * sizes.k + i] = a[row * k + from];
      for (int column = 0; column < n; ++column)
        halfB[i * n + column] = b[from * n + column];
    }
    addAtOnce(sizes, least, least, halfA.data(), halfB.data(), products.data(),
              nullptr);
  }
  bool isHalf = sizes.typeD == ptx::ScalarType::f16;
  for (int i = 0; i < sizes.m * n; ++i)
    sums[i] = isHalf ? toOddFloat(double(sums[i]) + double(products[i]))
                     : sums[i] + products[i];
  if (isHalf)
    roundHalves(sizes.m * n, sums);
}

void addProducts(const MmaSizes &sizes, const float *a, const float *b,
                 float *sums, const std::uint8_t *isAbsent) {
  if (ptx::sizeBytes(sizes.typeA) == 1)
    return addAsHalves(sizes, a, b, sums);
  addAtOnce(sizes, leastNormal(sizes.typeA), leastNormal(sizes.typeB), a, b,
            sums, isAbsent);
}

} // namespace kiln::sim
