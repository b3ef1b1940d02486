// epilogue.h: an accumulator on its way to global memory.
#pragma once

#include <kiln/tma.h>
#include <kiln/wgmma.h>

namespace kiln {

struct EpilogueOptions {
  /// The named barrier at which the warpgroup meets, 1..15; 0: 1 plus the index
  /// of the role.
  int barrier = 0;
};

/// Write `accumulator` to `tensor` at `origin` (row, column) by way of the tile
/// `staging`, in the tensor's type; TMA leaves out what lies outside. The
/// accumulator, the tensor map's tile and `staging` have one shape.
///
///     registers -> st.shared of pairs -> fence_async_shared -> bar.sync
///     one thread: tma_store, tma_store_commit, tma_store_wait_read(0)
///
/// The thread that stores waits until the tile has been read, and the next call
/// begins with a bar.sync: `staging` can serve again and again. Called by all
/// threads of one warpgroup: in its role, or in a kernel that has just one.
void store_through_shared(
    Accumulator &accumulator, const TmaTensor &tensor,
    const std::vector<At> &origin, const SharedTile &staging,
    const EpilogueOptions &options = {},
    std::source_location where = std::source_location::current());

} // namespace kiln
