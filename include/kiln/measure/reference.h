// reference.h: what a product should be, computed on the CPU in double.
//
//     D[M,N] = act(alpha * A[M,K] * B[K,N] + beta * C[M,N] + bias)
//
// A kernel is judged against this. The product is computed on all cores, tile
// by tile, so that a comparison needs no memory of the size of D; beside each
// element stands the sum of |a||b| over its K, the scale on which rounding
// errors live. What counts as equal is decided in one place, gemm_tolerance.
//
//     Comparison result = compare_gemm(
//         {.m = m, .n = n, .k = k, .a = a.data(), .b = b.data()}, d.data());
//
// kiln/kernels/gemm_reference.h makes a ReferenceGemm of a GemmProblem.
#pragma once

#include <kiln/base/export.h>
#include <kiln/language/tensorcore/scaling.h>
#include <kiln/base/random.h>
#include <kiln/base/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace KILN_API kiln {

enum class GemmBias : std::uint8_t;   // kiln/gemm.h
enum class Activation : std::uint8_t; // kiln/gemm.h

/// A product with every number known.
struct ReferenceGemm {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t batch = 1; ///< products
  /// Of A and B: any float or integer type. The low 13 bits of tf32 are not
  /// looked at: data that has any is rounded before.
  Type type = Type::f16;
  Type out = Type::f32; ///< of C and D
  /// Of the sums: f32, f16 or i32.
  Type accumulate = Type::f32;
  bool a_row_major = true;  ///< K contiguous; else M contiguous
  bool b_row_major = false; ///< N contiguous; else K contiguous
  bool d_row_major = true;  ///< N contiguous, of C too; else M contiguous
  /// Elements from one row (or column, as stored) to the next; 0: no gap.
  std::int64_t lda = 0, ldb = 0, ldc = 0, ldd = 0;
  /// Elements from one product to the next; left out: no gap; 0: one matrix for
  /// all.
  std::optional<std::int64_t> batch_stride_a = {}, batch_stride_b = {},
                              batch_stride_c = {}, batch_stride_d = {};
  double alpha = 1, beta = 0;
  GemmBias bias_kind = GemmBias{}; ///< none
  Activation act = Activation{};   ///< none
  Scaling scaling = Scaling::none;
  const void *a = nullptr;
  const void *b = nullptr;
  /// Their factors, where there is a scaling, of each product; of tensor, one.
  const void *a_scales = nullptr, *b_scales = nullptr;
  const void *c = nullptr;    ///< read where beta is not 0
  const void *bias = nullptr; ///< of type bias_type()
  /// What every byte of D was before the kernel ran: gaps must still be so.
  /// Left out: gaps are not looked at.
  std::optional<std::uint8_t> poison = {};

  Type bias_type() const { return out == Type::e4m3 ? Type::f32 : out; }
  /// Elements in memory, gaps and batch included.
  std::int64_t a_elements() const;
  std::int64_t b_elements() const;
  std::int64_t c_elements() const;
  std::int64_t d_elements() const;
  std::int64_t bias_elements() const; ///< 0 where there is none
  /// Factors of all products; 0 where there is no scaling.
  std::int64_t a_scale_count() const;
  std::int64_t b_scale_count() const;
};

/// Elements of the product: product by product, row by row.
struct ReferenceProduct {
  std::vector<double> d;         ///< before they are rounded to `out`
  std::vector<double> magnitude; ///< sum over k of |a||b|
};

/// Throws UserError where the product is none: a negative size, a leading
/// dimension shorter than a row, C or bias missing.
ReferenceProduct reference_gemm(const ReferenceGemm &gemm);
/// Only the elements where those rows and columns cross. Throws UserError where
/// one is not in the product.
ReferenceProduct reference_gemm(const ReferenceGemm &gemm,
                                std::span<const std::int64_t> rows,
                                std::span<const std::int64_t> cols);

/// One element on its way: sum, then alpha, C and bias, then the activation.
struct ReferenceElement {
  double sum = 0;       ///< of a * b
  double magnitude = 0; ///< of |a||b|
  double added = 0;     ///< |beta * c| + |bias|
  double before = 0;    ///< alpha * sum + beta * c + bias
  double want = 0;      ///< what D should hold, before rounding to `out`
};

/// How far an element of D may be from `want`. The reasons are in
/// ReferenceTolerance.cpp.
double gemm_tolerance(const ReferenceGemm &gemm,
                      const ReferenceElement &element);

struct Mismatch {
  std::int64_t batch = 0, row = 0, col = 0;
  double got = 0, want = 0;
  double tolerance = 0;
};

struct Comparison {
  bool ok = false;
  /// The largest |got - want| / (|alpha| sum|a||b| + |beta c| + |bias|);
  /// infinite where D has a NaN.
  double max_rel_err = 0;
  std::int64_t compared = 0;     ///< elements looked at
  bool is_sampled = false;       ///< some rows and columns, not all
  std::int64_t wrong = 0;        ///< elements
  std::int64_t touched_gaps = 0; ///< elements between the rows of D
  std::vector<Mismatch> first;   ///< up to 8 of them, by batch, row, column
};

/// Compare D with the reference. A NaN in D is always wrong. Of a product with
/// more than `max_products` multiplications, rows and columns spread over D are
/// compared, about as many as that number pays for.
Comparison compare_gemm(const ReferenceGemm &gemm, const void *d,
                        std::int64_t max_products = std::int64_t{1} << 34);

} // namespace kiln
