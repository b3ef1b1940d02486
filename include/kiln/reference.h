// reference.h: what a product should be, computed on the CPU in double.
//
// A kernel is judged against this. The product is computed on all cores, tile
// by tile, so that a comparison needs no memory of the size of D; beside each
// element stands the sum of |a||b| over its K, the scale on which rounding
// errors live. What counts as equal is decided in one place, gemm_tolerance.
//
//     Comparison result = compare_gemm(
//         {.m = m, .n = n, .k = k, .a = a.data(), .b = b.data()},
//         Type::f32, d.data());
#pragma once

#include <kiln/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kiln {

/// The product A[M,K] * B[K,N] of matrices stored without gaps.
struct ReferenceGemm {
  std::int64_t m = 0, n = 0, k = 0;
  Type type = Type::f16;    ///< of A and B, any float or integer type
  bool a_row_major = true;  ///< K contiguous; else M contiguous
  bool b_row_major = false; ///< N contiguous; else K contiguous
  const void *a = nullptr;
  const void *b = nullptr;
};

/// Elements of the product, row by row.
struct ReferenceProduct {
  std::vector<double> d;
  std::vector<double> magnitude; ///< sum over k of |a||b|
};

ReferenceProduct reference_gemm(const ReferenceGemm &gemm);
/// Only the elements where those rows and columns cross. Throws UserError where
/// one is not in the product.
ReferenceProduct reference_gemm(const ReferenceGemm &gemm,
                                std::span<const std::int64_t> rows,
                                std::span<const std::int64_t> cols);

/// How far an element of type `out` may be from `want`, where products were
/// added up in f32 over `k`. The reasons are in Reference.cpp.
double gemm_tolerance(Type out, std::int64_t k, double want, double magnitude);

struct Mismatch {
  std::int64_t row = 0, col = 0;
  double got = 0, want = 0;
  double tolerance = 0;
};

struct Comparison {
  bool ok = false;
  /// The largest |got - want| / sum|a||b|; infinite where D has a NaN.
  double max_rel_err = 0;
  std::int64_t compared = 0;   ///< elements looked at
  bool is_sampled = false;     ///< some rows and columns, not all
  std::int64_t wrong = 0;      ///< elements
  std::vector<Mismatch> first; ///< up to 8 of them, by row, then column
};

/// Compare D[M,N], row-major, with the reference. A NaN in D is always wrong.
/// Of a product with more than `max_products` multiplications, rows and columns
/// spread over D are compared, about as many as that number pays for.
Comparison compare_gemm(const ReferenceGemm &gemm, Type out, const void *d,
                        std::int64_t max_products = std::int64_t{1} << 34);

/// Element i is SplitMix64 of `seed` and i, uniform in [lo, hi), rounded to the
/// type; integers include hi. The same numbers on every machine.
void fill_random(Type type, void *data, std::size_t count, std::uint64_t seed,
                 double lo = -1, double hi = 1);

} // namespace kiln
