// ReferenceTolerance: how far a right result may be from the exact one.
//
// Too loose, and a lost product passes; too strict, and good kernels fail. So
// each step on the way to D adds what it may lose, with its reason, and there
// is no other place that says so.
#include "verify/Reference.h"

#include "kiln/kernels/gemm.h"

#include <cmath>

namespace kiln {

/// f32 arithmetic rounds by at most this, relative to its result.
static constexpr double kF32Eps = 0x1p-24;

/// Half of the last place, relative to the value.
static double halfUlp(Type out) {
  switch (out) {
  case Type::f64:
    return 0x1p-53;
  case Type::f32:
    return kF32Eps;
  case Type::f16:
  case Type::tf32:
    return 0x1p-11;
  case Type::bf16:
    return 0x1p-8;
  case Type::e4m3:
    return 0x1p-4;
  case Type::e5m2:
    return 0x1p-3;
  default:
    return 0;
  }
}

/// Half of the distance between the smallest numbers of the type.
static double halfSmallest(Type out) { return from_bits(out, 1) / 2; }

static bool isFp8(Type type) {
  return type == Type::e4m3 || type == Type::e5m2;
}

// Tensor cores do not round sums to nearest. Per instruction they align 16
// products and the accumulator to the largest of them and truncate, each by
// less than eps = 2^-24 of it, then truncate the sum to f32, by less than
// 2 eps: at most about K eps |p| over all of K, where |p| is how large the
// running sum was. Truncation loses half of its bound on average, and a sum
// that climbs to |sum| is half as large on average: K/4 eps |sum|. Terms of
// random sign stray further on the way, by a few times S / sqrt(K), where
// S = sum|a||b|:
//
//     (2 + sqrt(K)) eps S + K/4 eps |sum|
//
// An H200 stays below half of that for K from 512 to 65536, with terms of
// random sign and of one sign. Terms in an order that first climbs to S / 2 and
// then returns to nothing may exceed it by right; that is the price of catching
// one lost product at large K.
//
// 8-bit floats are aligned in the same way with 13 fraction bits, eps = 2^-13.
// An instruction of tf32 takes 8 products, so that the truncation of the sum
// counts for more: 11/8 of what 16 products lose, at most 3/2.
static double lostInAlignment(Type type, double depth, double sum,
                              double magnitude) {
  double eps = isFp8(type) ? 0x1p-13 : kF32Eps;
  double share = type == Type::tf32 ? 1.5 : 1;
  return share * ((2 + std::sqrt(depth)) * eps * magnitude +
                  depth / 4 * eps * std::fabs(sum));
}

/// What a sum of type f16 loses besides: it is rounded after each instruction,
/// of 16 products, or 32 of 8-bit floats, and near zero to the steps of
/// subnormals.
static double lostInHalf(Type type, double depth, double sum,
                         double magnitude) {
  double steps = std::ceil(depth / (isFp8(type) ? 32 : 16));
  return 0x1p-11 *
             ((2 + std::sqrt(steps)) * magnitude + steps / 4 * std::fabs(sum)) +
         steps * halfSmallest(Type::f16);
}

static double sumTolerance(const ReferenceGemm &gemm, double sum,
                           double magnitude) {
  if (gemm.accumulate == Type::i32)
    return 0;
  auto depth = static_cast<double>(gemm.k);
  double lost = lostInAlignment(gemm.type, depth, sum, magnitude);
  if (gemm.accumulate == Type::f16)
    lost += lostInHalf(gemm.type, depth, sum, magnitude);
  return lost;
}

/// What the activation makes of an error before it, and what it adds: the
/// slopes of gelu and silu stay below 1.13 and 1.1; tanh.approx is right to
/// 2^-11 and goes in with half of x; ex2.approx and rcp.approx are right to a
/// few 2^-23, and the exponent of e^x is rounded by up to |x| of them.
static double activated(Activation act, double error, double x) {
  double size = std::fabs(x);
  switch (act) {
  case Activation::none:
  case Activation::relu:
    return error;
  case Activation::gelu:
    return 1.13 * error + size * (0x1p-12 + 0x1p-20);
  case Activation::silu:
    return 1.1 * error + size * (4 + std::min(size, 32.0)) * 0x1p-23;
  }
  return error;
}

/// Whether D is the sum itself, with nothing done to it in f32.
static bool isPlain(const ReferenceGemm &gemm) {
  return gemm.scaling != Scaling::tensor && gemm.alpha == 1 && gemm.beta == 0 &&
         gemm.bias_kind == GemmBias::none && gemm.act == Activation::none;
}

/// What those who wrote such kernels before accept at most.
static bool hasCap(const ReferenceGemm &gemm) {
  return (gemm.type == Type::f16 || gemm.type == Type::bf16) &&
         gemm.accumulate == Type::f32 && gemm.out == Type::f32;
}

double gemm_tolerance(const ReferenceGemm &gemm,
                      const ReferenceElement &element) {
  double alpha = std::fabs(gemm.alpha);
  double size = std::fabs(element.want);
  double error = alpha * sumTolerance(gemm, element.sum, element.magnitude);
  // The sum becomes f32, is multiplied, and two numbers are added to it. The
  // factors of tensors and alpha are multiplied before.
  double scale = alpha * std::fabs(element.sum) + element.added;
  double steps = gemm.scaling == Scaling::tensor ? 6 : 4;
  if (!isPlain(gemm))
    error = activated(gemm.act, error + steps * kF32Eps * (scale + error),
                      element.before);
  if (!is_float(gemm.out))
    return isPlain(gemm) ? error : error + 0.5;
  double total = error + std::max(halfUlp(gemm.out) * (size + error),
                                  halfSmallest(gemm.out));
  return hasCap(gemm)
             ? std::min(total, 1e-3 * scale + 1e-1 * std::max(alpha, 1.0))
             : total;
}

} // namespace kiln
