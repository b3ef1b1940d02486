// operands: A and B as the schedules see them.
//
// Whatever the layout, a schedule asks for the tile of A at (row, k) and of B
// at (k, column) and multiplies them. How they are stored, whether TMA or
// threads copy them, and which part a CTA of a cluster loads is known here
// alone.
#pragma once

#include "kernel_problem.h"
#include "repack.h"

#include <kiln/kernels/gemm.h>
#include <kiln/language/collective/pipeline.h>
#include <kiln/language/collective/tile_scheduler.h>
#include <kiln/language/tile/copy.h>

#include <optional>

namespace kiln::gemm_kernel {

/// Declare a matrix that TMA copies in `parts` of its tile, one for each
/// product of a batch.
TmaTensor declare_map(KernelBuilder &kb, const std::string &name,
                      const TileLayout &tile, const StoredMatrix &matrix,
                      const Dim &batch, int parts = 1);
/// Declare a matrix that threads read, one for each product of a batch.
Tensor declare_tensor(KernelBuilder &kb, const std::string &name, Type type,
                      const StoredMatrix &matrix, const Dim &batch);

/// Elements along a side that is stored contiguously: as many as the tile has,
/// filled up to whole rows of the swizzle.
int stored_extent(const GemmProblem &problem, const GemmSchedule &schedule,
                  int extent);
/// The tiles of A and B in one slot of shared memory.
TileLayout tile_of_a(const GemmProblem &problem, const GemmSchedule &schedule);
TileLayout tile_of_b(const GemmProblem &problem, const GemmSchedule &schedule);
/// Whether tensor memory takes factors, which come through the slots.
inline bool has_scale_pieces(const GemmProblem &problem) {
  return problem.scaling == Scaling::mx || problem.scaling == Scaling::nv;
}
/// Blocks of K in one step that have a factor each.
inline int step_blocks(const GemmProblem &problem,
                       const GemmSchedule &schedule) {
  return schedule.tile_k / block_of(problem.scaling).k;
}
/// All in the order of a slot: what TMA loads, factors too, comes before what
/// threads copy.
std::vector<TileLayout> slot_tiles(const KernelProblem &computed,
                                   const GemmSchedule &schedule);

class Operands {
public:
  /// Declare A and B in the kernel, in the caller's order; `sms` of the device.
  Operands(KernelBuilder &kb, const KernelProblem &problem,
           const GemmSchedule &schedule, int sms);

  /// Workspaces, after all other arguments.
  void declare_workspaces(KernelBuilder &kb);
  /// Copy what is copied first, by at most so many CTAs; all threads reach
  /// both, outside of roles.
  void begin_repack(KernelBuilder &kb, const Dim &ctas) {
    repack_.begin(kb, ctas);
  }
  void repack(int warps, bool launches) const { repack_.run(warps, launches); }
  bool has_repack() const { return !repack_.is_empty(); }
  /// The ring their tiles go through; all threads reach it. `options` say how
  /// they are read. Without TMA the slots alone.
  void make_slots(KernelBuilder &kb, const TileScheduler &scheduler,
                  const PipelineOptions &options);
  Pipeline &pipeline() { return *pipeline_; }
  /// What lies first in shared memory.
  SharedTile first_slot() const;
  /// At the end of the kernel, outside of roles.
  void finish() {
    if (pipeline_)
      pipeline_->finish();
  }

  /// Load the `k_tile`-th tiles for an output tile into the next slot.
  void load(const OutputTile &tile, At k_tile);
  /// The same without TMA, by all `threads` of the CTA into the slot of that
  /// number, by as many cp.async as its rows allow.
  void copy(const OutputTile &tile, const Value &k_tile, const Value &slot,
            int threads) const;
  /// The [tile_m, tile_k] and [tile_k, tile_n] tiles of a slot; of a pair of
  /// CTAs that multiply together, each has half of the latter.
  SharedTile a(const Slot &slot) const { return as_a(slot.tile(index_of_a())); }
  SharedTile b(const Slot &slot) const { return as_b(slot.tile(index_of_b())); }
  SharedTile a(const Value &slot) const { return as_a(a_slots_[slot]); }
  SharedTile b(const Value &slot) const { return as_b(b_slots_[slot]); }
  /// Their factors, of tile_m and of tile_n rows, where tensor memory takes
  /// them.
  SharedTile a_scales(const Slot &slot) const { return slot.tile(map_count()); }
  SharedTile b_scales(const Slot &slot) const {
    return slot.tile(map_count() + 1);
  }
  /// The factor, f32, of a row of A and of a block of columns of B in a block
  /// of K: of Scaling::blocks.
  Value a_factor(const OutputTile &tile, const Value &block, Value row) const;
  Value b_factor(const OutputTile &tile, const Value &block) const;

  const Dim &k_tiles() const { return k_tiles_; }
  bool uses_tma() const { return a_.map && b_.map; }

private:
  /// A matrix that TMA loads, or that threads copy; both where it is repacked
  /// first.
  struct Source {
    std::optional<TmaTensor> map;
    std::optional<Tensor> tensor;

    bool is_copied_by_tile() const { return tensor && !map; }
  };

  const GemmProblem &problem() const { return problem_.problem; }
  void make_pipeline(KernelBuilder &kb, const TileScheduler &scheduler,
                     PipelineOptions options);
  /// As they are multiplied, of what is stored.
  SharedTile as_a(const SharedTile &stored) const;
  SharedTile as_b(const SharedTile &stored) const;
  /// Where the tiles of A and B begin, as their matrices are stored.
  struct Origins {
    std::vector<At> a, b;
  };
  Origins origins(const OutputTile &tile, const Value &k_tile) const;
  Source declare(KernelBuilder &kb, const char *name, const TileLayout &tile,
                 const StoredMatrix &matrix, bool uses_tma, int parts) const;
  void declare_scales(KernelBuilder &kb);
  void load_scales(const Slot &slot, const OutputTile &tile,
                   const Value &k_tile) const;
  /// Matrices that TMA loads, and what stands before those that threads copy.
  int map_count() const { return (a_.map ? 1 : 0) + (b_.map ? 1 : 0); }
  int first_copied() const {
    return map_count() + (has_scale_pieces(problem()) ? 2 : 0);
  }
  /// Their places in a slot.
  int index_of_a() const { return a_.map ? 0 : first_copied(); }
  int index_of_b() const {
    int before = b_.map ? 0 : first_copied();
    return before + ((a_.map ? 1 : 0) == (b_.map ? 1 : 0) ? 1 : 0);
  }
  /// Whether a matrix is read once, in a launch of one round of tiles, where
  /// the other one has so many tiles.
  bool is_read_once(const Dim &other, int tile_extent) const;
  void copy_tile(CopyScope scope, const SharedTile &to, const Tensor &from,
                 const std::vector<At> &at) const;

  KernelProblem problem_;
  GemmSchedule schedule_;
  int sms_;
  Repack repack_;
  Dim k_tiles_;
  Source a_, b_;
  Source a_scales_, b_scales_;
  std::unique_ptr<Pipeline> pipeline_;
  SharedTileArray a_slots_, b_slots_; ///< without TMA
  Multicast a_parts_, b_parts_;
  std::optional<Value> first_column_; ///< of this CTA's B in the tile
};

} // namespace kiln::gemm_kernel
