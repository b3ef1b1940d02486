// main_loop: what the kernels of all architectures share: one way to load a
// tile, one way out, one order of tiles. What multiplies, and who does it when,
// is a kernel of its own: wgmma_kernel (Hopper), tcgen05_kernel (Blackwell) and
// mma_kernel (Ampere and Ada).
#pragma once

#include "output.h"
#include "trace.h"

#include <memory>

namespace kiln::gemm_kernel {

/// What one consumer computes of an output tile.
struct Share {
  int rows, columns;
  Value first_row, first_column;

  Share(const GemmSchedule &schedule, const Value &consumer)
      : rows(schedule.consumer_rows()), columns(schedule.consumer_columns()),
        first_row(consumer * (rows == schedule.tile_m ? 0 : rows)),
        first_column(consumer * (columns == schedule.tile_n ? 0 : columns)) {}
};

class MainLoop {
public:
  /// Declares the arguments; `options` are those of the kernel.
  MainLoop(const GemmProblem &problem, const GemmSchedule &schedule,
           const DeviceDescription &device, const KernelOptions &options);
  virtual ~MainLoop() = default;

  Module build();

protected:
  /// Barriers beside those of the slots; no threads meet there.
  virtual void make_barriers() = 0;
  /// How slots are read that go from a producer to consumers.
  virtual PipelineOptions pipeline_options() const { return {}; }
  /// What is made behind the slots.
  virtual void make_memory() {}
  virtual void roles() = 0;

  /// Load every K tile of every output tile of this CTA: in one thread, or,
  /// where threads copy, in those of a warpgroup.
  void load_all();

  const GemmProblem &shape() const { return problem_.problem; }
  /// From `begin`, with `second` behind it, to before `end`.
  struct Range {
    At begin, end, second;
  };
  Range k_range(const OutputTile &tile) const;
  /// A part of the slot's tiles: [rows, tile_k] of A, [tile_k, columns] of B.
  template <typename AnySlot>
  SharedTile a_of(const AnySlot &slot, const Share &share) const {
    SharedTile a = operands_.a(slot);
    if (share.rows == schedule_.tile_m)
      return a;
    return a.slice(share.first_row, 0, share.rows, schedule_.tile_k);
  }
  template <typename AnySlot>
  SharedTile b_of(const AnySlot &slot, const Share &share) const {
    SharedTile b = operands_.b(slot);
    if (share.columns == schedule_.tile_n)
      return b;
    return b.slice(0, share.first_column, schedule_.tile_k, share.columns);
  }
  /// Write the sums of a share: an Accumulator or a TensorTile.
  template <typename Sums>
  void store(Sums &sums, const OutputTile &tile, const Share &share,
             const Value &consumer) {
    output_.store(sums, tile, tile.m * schedule_.tile_m + share.first_row,
                  tile.n * schedule_.tile_n + share.first_column, consumer);
  }

  GemmSchedule schedule_;
  KernelProblem problem_;
  const int warps_; ///< of a CTA
  KernelBuilder kb_;
  Trace trace_;
  Operands operands_;
  Output output_;
  TileScheduler scheduler_;

private:
  static TileSchedulerOptions order(const GemmSchedule &schedule);
  KernelBuilder &declare_dims();
  bool is_long() const;
};

/// Those of main_loops.h.
std::unique_ptr<MainLoop> make_wgmma_kernel(const GemmProblem &problem,
                                            const GemmSchedule &schedule,
                                            const GemmDebug &debug,
                                            const DeviceDescription &device);
std::unique_ptr<MainLoop> make_mma_kernel(const GemmProblem &problem,
                                          const GemmSchedule &schedule,
                                          const GemmDebug &debug,
                                          const DeviceDescription &device);
std::unique_ptr<MainLoop> make_tcgen05_kernel(const GemmProblem &problem,
                                              const GemmSchedule &schedule,
                                              const GemmDebug &debug,
                                              const DeviceDescription &device);

} // namespace kiln::gemm_kernel
