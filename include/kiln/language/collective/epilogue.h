// epilogue.h: an accumulator on its way to global memory.
//
//     registers -> cast, stmatrix -> shared memory -> fence, barrier
//     one thread: tma_store, commit; the next part goes to another buffer
//
// The tile goes out in subtiles, each the tile of the tensor map. While TMA
// reads one buffer the threads fill the other; nobody waits until the data has
// arrived in global memory, so a persistent kernel goes on with its next tile.
//
// Rows that TMA cannot take are written by the threads, from shared memory too:
// neighbouring threads write neighbouring elements of a row, where those of an
// accumulator lie all over the tile.
#pragma once

#include <kiln/language/builder.h>
#include <kiln/base/export.h>
#include <kiln/language/tensorcore/tensor_memory.h>
#include <kiln/language/memory/tma.h>
#include <kiln/language/tensorcore/wgmma.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace KILN_API kiln {

struct EpilogueOptions {
  int warpgroups = 1; ///< that store, each through buffers of its own
  int buffers = 2;    ///< of each
  /// Where the buffers lie, by default behind what is there. Over a pipeline's
  /// slots they cost nothing where it has been drained by then.
  SharedOptions place = {};
  /// Of tensor memory: columns that are loaded at once; 0: those of a subtile.
  int load_columns = 0;
  /// Of what the threads write: divides the column of every origin.
  int column_multiple = 1;
};

class Epilogue {
public:
  /// `tensor` has 2 dimensions, or more with a tile of 1 in those before the
  /// last two; its tile is a subtile: it divides the accumulators.
  Epilogue(KernelBuilder &kb, const TmaTensor &tensor,
           const EpilogueOptions &options = {}, Where where = Where::current());
  /// The same by the threads, in subtiles of so many rows and columns, the last
  /// ones narrower where the accumulators are not multiples; a subtile may reach
  /// beyond the tensor, where nothing is written.
  Epilogue(KernelBuilder &kb, const Tensor &tensor, int rows, int columns,
           const EpilogueOptions &options = {}, Where where = Where::current());

  /// Write `accumulator` at `origin` (..., row, column), each element passed
  /// through `map` first. Waits for what is in flight. Called by the 128
  /// threads of a warpgroup, the `warpgroup`-th of those that store.
  void store(Accumulator &accumulator, const std::vector<At> &origin,
             const ElementMap &map = {}, At warpgroup = 0,
             Where where = Where::current());
  /// The same of sums in tensor memory, whose products were waited for: a row
  /// in each thread, `load_columns` at a time. `map` gets those of a row.
  void store(const TensorTile &sums, const std::vector<At> &origin,
             const ElementMap &map = {}, At warpgroup = 0,
             Where where = Where::current());
  /// Wait until what this warpgroup stored has been read from shared memory:
  /// before the kernel ends, or the buffers serve something else.
  void finish(Where where = Where::current()) const;

private:
  void make_buffers(KernelBuilder &kb, Where where);
  std::size_t rank() const {
    return map_ ? static_cast<std::size_t>(map_->rank())
                : tensor_->shape().size();
  }
  /// Write a buffer with the subtile that begins there in the sums.
  using Fill =
      std::function<void(const SharedTile &buffer, int row, int column)>;
  void store_subtiles(int rows, int columns, const std::vector<At> &origin,
                      At warpgroup, const Fill &fill, Where where);
  void write(const SharedTile &buffer, const std::vector<At> &at,
             Where where) const;

  std::optional<TmaTensor> map_; ///< or
  std::optional<Tensor> tensor_;
  std::string name_;
  TileLayout subtile_;
  SharedTileArray buffers_;
  EpilogueOptions options_;
};

/// What a subtile that the threads write lies in: its rows are so far apart
/// that those of a matrix of 8 lie in different banks.
TileLayout staged_tile(Type type, int rows, int columns);

/// One subtile's worth of shared memory for each buffer: for max_stages.
int epilogue_bytes(const TileLayout &subtile, const EpilogueOptions &options);

} // namespace kiln
