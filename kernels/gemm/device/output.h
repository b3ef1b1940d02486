// output: D and what is done to an element on its way there.
#pragma once

#include "operands.h"
#include "sums.h"

#include <kiln/language/collective/epilogue.h>

#include <optional>

namespace kiln::gemm_kernel {

class Output {
public:
  /// Declare the factors of all of A and of B, C, the bias, D, alpha and beta
  /// in the kernel.
  Output(KernelBuilder &kb, const KernelProblem &problem,
         const GemmSchedule &schedule);

  /// Workspaces of so many output tiles, after all other arguments.
  void declare_workspaces(KernelBuilder &kb, const Dim &tiles);
  /// Shared memory for the way out; `first_slot` is what it may lie over.
  void make_buffers(KernelBuilder &kb, const SharedTile &first_slot);

  /// Where the grid divides K: tell the other CTAs of the tile of that number
  /// that this one runs. Behind wait_for_dependencies, outside of roles.
  void begin(const Value &tile) const;
  /// At the beginning of the role that stores: load what is the same for all
  /// tiles, so that it is there when they are stored.
  void start();
  /// Write an accumulator at (row, column) of the output tile's matrix; the
  /// caller is the `warpgroup`-th of those that store.
  void store(Accumulator &accumulator, const OutputTile &tile, const Value &row,
             const Value &column, const Value &warpgroup);
  /// The same of sums in tensor memory, whose products were waited for.
  void store(const TensorTile &sums, const OutputTile &tile, const Value &row,
             const Value &column, const Value &warpgroup);
  /// The same of one sum, by one thread.
  void store(const Value &sum, const OutputTile &tile, const Value &row,
             const Value &column) const;
  /// Before the role that stored ends.
  void finish();

private:
  std::optional<Value> factor() const;
  /// Sums of either kind.
  template <typename AnySums>
  void store_sums(AnySums &sums, const OutputTile &tile, const Value &row,
                  const Value &column, const Value &warpgroup);
  /// Neighbours in a row of the sums, or, where D is column-major, in a column.
  Values finished(const Values &values, const OutputTile &tile,
                  const Value &row, const Value &column) const;
  /// What Sums hands over of a share that begins there.
  Sums::Taker taker(const OutputTile &tile, const Value &row,
                    const Value &column) const;
  void store_line(const Values &values, const OutputTile &tile,
                  const Value &line, const Value &first) const;
  /// Where a share goes.
  std::vector<At> origin(const OutputTile &tile, const Value &row,
                         const Value &column) const;
  Tensor matrix(const OutputTile &tile) const;

  const GemmProblem problem_;
  const GemmSchedule schedule_;
  std::optional<Tensor> a_scale_, b_scale_, c_, bias_, d_;
  std::optional<TmaTensor> d_map_;
  std::optional<Value> alpha_, beta_;
  std::optional<Value> a_factor_, b_factor_; ///< loaded
  EpilogueOptions options_;
  std::optional<Epilogue> epilogue_;
  std::optional<Sums> sums_;
  const bool is_over_slots_;
};

/// Columns that go out at once where the schedule leaves it open: 128 bytes of
/// a row; by TMA equal parts of the consumer's, of at most as many.
int subtile_columns(const KernelProblem &computed,
                    const GemmSchedule &schedule);

/// The buffers in shared memory: `count` tiles.
struct OutputBuffers {
  TileLayout tile;
  int count = 0;
  bool is_over_slots = false; ///< they lie where A and B were
};
OutputBuffers output_buffers(const KernelProblem &problem,
                             const GemmSchedule &schedule);

} // namespace kiln::gemm_kernel
