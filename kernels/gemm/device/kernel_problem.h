// kernel_problem: the problem as a kernel computes it.
#pragma once

#include <kiln/kernels/gemm.h>

namespace kiln::gemm_kernel {

/// A matrix in memory: `rows` of `columns` elements, `stride` apart; that of
/// the next product `product` elements behind it.
struct StoredMatrix {
  Dim rows, columns, stride, product;

  /// Whether each product of a batch has one of its own.
  bool has_batch(const Dim &batch) const {
    return batch != Dim(1) && product != Dim(0);
  }

  /// Whether TMA can copy it: rows and products begin on 16 bytes, whatever
  /// the arguments are.
  bool suits_tma(Type type, const Dim &batch) const;
};

/// The problem as a kernel computes it: of a column-major D, or where the
/// schedule swaps, its transpose, B^T * A^T, which stores nothing differently.
/// `is_swapped`: A and B have changed places. D is then row-major, unless the
/// schedule swaps: the rows of a tile of sums are columns in memory.
struct KernelProblem {
  GemmProblem problem;
  bool is_swapped;
  bool is_repacked; ///< rows that TMA cannot take are copied first
  /// The device has TMA. Where it has not, threads copy in the background
  /// (cp.async) what TMA would load, and the others store D.
  bool has_tma;

  KernelProblem(const GemmProblem &problem, const GemmSchedule &schedule,
                bool has_tma = true);

  StoredMatrix a() const, b() const;
  /// Output tiles of all products, and those that fill clusters up.
  Dim tiles(const GemmSchedule &schedule) const;
  /// Whether TMA, or cp.async, can load A, B as they are.
  bool a_suits_tma() const, b_suits_tma() const;
  /// Whether TMA loads A, B, both, from a copy where they are repacked.
  bool a_uses_tma() const { return is_repacked || a_suits_tma(); }
  bool b_uses_tma() const { return is_repacked || b_suits_tma(); }
  bool uses_tma() const { return a_uses_tma() && b_uses_tma(); }
  /// What a thread of the producer needs: little for TMA, more where it copies,
  /// and most of tiles that lie in several panels, or of a stride that is known
  /// at launch.
  int producer_registers() const;
  bool stores_by_tma() const;
};

} // namespace kiln::gemm_kernel
