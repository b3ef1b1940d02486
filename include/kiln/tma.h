// tma.h: copies by the tensor memory accelerator.
#pragma once

#include <kiln/mbarrier.h>
#include <kiln/memory.h>

#include <vector>

namespace kiln {

/// Copy the tile of `source` that starts at `origin` (row, column; outermost
/// first) into `tile`, and signal its bytes to `barrier`. Called by one thread.
/// Elements outside the tensor read as the map's fill, and count as bytes.
///
/// Becomes one cp.async.bulk.tensor per box.
void tma_load(const SharedTile &tile, const TmaTensor &source,
              const std::vector<At> &origin, const Mbarrier &barrier,
              std::source_location where = std::source_location::current());

/// Fetch the tensor map itself, ahead of its first use (prefetch.tensormap).
void tma_prefetch(const TmaTensor &tensor,
                  std::source_location where = std::source_location::current());

} // namespace kiln
