// AlignedSum: how a tensor core adds up products.
//
// The products of a step along K and the sum so far are added at once, not one
// after the other. Each product is exact. The largest power of two among them,
// which for a product is the sum of its factors' exponents, decides what a bit
// is worth; of each addend the bits below that are cut off. What comes out is
// cut off to a float, or rounded to nearest where it is an f16:
//
//     largest = max(2^(ea + eb) of every product, 2^ec)
//     bit     = largest / 2^fractionBits
//     sum     = (trunc(c / bit) + trunc(a0 * b0 / bit) + ...) * bit
//
// Of wgmma and mma an H200 has answered alike in every bit (tests/golden,
// TensorCoreProbes.cpp). The model is that of Khattak and Mikaitis, Accurate
// Models of NVIDIA Tensor Cores (arXiv 2512.07004), which has a B200 too.
#pragma once

#include "sim/units/matrix/MatrixProduct.h"

namespace kiln::sim {

/// What a sum keeps.
struct SumRule {
  int fractionBits = 25; ///< behind the point of the largest addend
  int keptBits = 23;     ///< of the sum, behind its point
  bool isRoundedAfter =
      false; ///< to f16: what is cut off shows in the last bit
  float leastX = 0, leastY = 0; ///< the smallest normal numbers of the factors
  /// One product after another, in f32: no tensor core does, and it is faster.
  bool isInOrder = false;
};

/// The rule of a wgmma. `isFast`: in order, where its types have 16 bits or more.
SumRule groupSumRule(const ProductShape &shape, bool isFast);
float leastNormal(OperandType type);

/// The factors of a sum: x[line * lineStep + inner * step] for each line, and
/// y[inner * pitch + column] for each column.
struct SumFactors {
  int lines = 0, columns = 0, k = 0;
  const float *x = nullptr;
  int lineStep = 0, step = 0;
  const float *y = nullptr;
  int pitch = 0;
  const std::uint8_t *isAbsent = nullptr; ///< of a sparse x, [line][k]
};

/// sums[line * pitch + column] becomes the sum with all products; columns are a
/// multiple of 8.
void addAligned(const SumRule &rule, const SumFactors &factors, float *sums,
                int pitch);

/// The bits of an f16 that addAligned has left to be rounded.
std::uint16_t roundToHalf(float sum);

} // namespace kiln::sim
