// matrix.h: 8x8 matrices of 16 bits, as a warp holds them, and their products.
//
// A warp holds an 8x8 matrix of 16-bit elements in one word per lane: lane l
// has row l / 4, columns 2 * (l % 4) and the next one, packed (vector.h).
//
//     column   0 1   2 3   4 5   6 7
//     row 0    l0    l1    l2    l3
//     row 1    l4    l5    l6    l7
//     ...
//     row 7    l28   l29   l30   l31
//
// All 32 lanes come to these instructions together.
#pragma once

#include <kiln/base/export.h>
#include <kiln/language/memory/memory.h>
#include <kiln/language/value/vector.h>

namespace KILN_API kiln {

struct MatrixOptions {
  /// Each matrix is transposed on its way: row l / 4 of lane l is a column in
  /// memory (.trans).
  bool transpose = false;
};

/// Read 1, 2 or 4 matrices from shared memory: one word of each per lane. Lane
/// 8 * i + r says where row r of matrix i begins, 16 bytes aligned to 16; what
/// the lanes beyond say is not used.
///
///     Values a = ldmatrix(tile(lane % 16, lane / 16 * 8), 4);
///
/// Becomes ldmatrix.sync.aligned.m8n8.x4.shared.b16.
Values ldmatrix(const Element &row, int count,
                const MatrixOptions &options = {},
                Where where = Where::current());

/// Write 1, 2 or 4 matrices, one word of each per lane, to the rows the lanes
/// name as for ldmatrix.
///
///     stmatrix(tile(lane % 16, lane / 16 * 8), {w0, w1, w2, w3});
///
/// Becomes stmatrix.sync.aligned.m8n8.x4.shared.b16.
void stmatrix(const Element &row, const Values &words,
              const MatrixOptions &options = {},
              Where where = Where::current());

/// A matrix in its words, transposed (movmatrix.sync.aligned.m8n8.trans.b16).
Value movmatrix(At word);

/// The form of one mma: D[m,n] = A[m,k] * B[k,n] + C[m,n].
///
///     a, b                  m n k                         c and d
///     f16                   16 8 8, 16 8 16               f32, f16
///     bf16                  16 8 8, 16 8 16               f32
///     tf32                  16 8 4, 16 8 8                f32
///     i8, u8 (each its own) 8 8 16, 16 8 16, 16 8 32      i32
///     f64                   8 8 4, 16 8 4, 16 8 8, 16 8 16   f64
struct MmaForm {
  int m = 16, n = 8, k = 16;
  Type a = Type::f16, b = Type::f16;
  Type accumulator = Type::f32;

  /// Registers of a lane for A, B and C: words of packed elements (u32), but
  /// f64, and accumulators of f32 and i32, one by one.
  int a_registers() const;
  int b_registers() const;
  int accumulators() const;
  /// "m16n8k16, f32 += f16 * f16"
  std::string to_string() const;
};

/// D, in the registers PTX gives each lane ("Matrix Fragments for mma"): for
/// m16n8k16 of f16 lane l has rows l / 4 and l / 4 + 8 of A and D.
///
///     Values d = mma({.k = 16}, a, b, c);    // 4, 2 and 4 registers
///
/// Becomes mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32.
Values mma(const MmaForm &form, const Values &a, const Values &b,
           const Values &c, Where where = Where::current());

} // namespace kiln
