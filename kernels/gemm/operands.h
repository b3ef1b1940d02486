// operands: the tensors of a GEMM as its schedules see them.
//
// Whatever the layout, a schedule asks for the tile at (row, k) of A and at
// (k, column) of B and multiplies them; which way they are stored is known
// here alone.
#pragma once

#include <kiln/gemm.h>
#include <kiln/pipeline.h>

namespace kiln::gemm {

/// A and B by TMA, D by plain stores, and where this CTA's tile begins.
struct Operands {
  TmaTensor a, b;
  Tensor d;
  Dim k_tiles;
  Value row, column;
  StoreOptions store;

  /// Declare them in the kernel, with its runtime dimensions and its grid.
  Operands(KernelBuilder &kb, const GemmProblem &problem,
           const GemmSchedule &schedule);

  /// Load the `k_tile`-th tiles of A and B.
  void load(const Slot &slot, At k_tile) const;
  /// accumulator += A tile * B tile.
  void multiply(Accumulator &accumulator, const Slot &slot) const;

private:
  struct Parts;
  Operands(const Parts &parts);
  static Parts declare(KernelBuilder &kb, const GemmProblem &problem,
                       const GemmSchedule &schedule);
  int tile_k_;
  bool a_is_k_major_, b_is_k_major_;
};

/// The layouts of the A and B tiles in shared memory.
TileLayout tile_of_a(const GemmProblem &problem, const GemmSchedule &schedule);
TileLayout tile_of_b(const GemmProblem &problem, const GemmSchedule &schedule);

// The schedules, one file each; `schedule` has been through fit().
Module build_multistage(const GemmProblem &problem,
                        const GemmSchedule &schedule);
Module build_warp_specialized(const GemmProblem &problem,
                              const GemmSchedule &schedule);

} // namespace kiln::gemm
