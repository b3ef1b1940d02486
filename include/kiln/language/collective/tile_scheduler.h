// tile_scheduler.h: TileScheduler, which tiles of an output a CTA computes, and
// in which order.
//
// A CTA takes one tile, or, in a persistent kernel, one after another until
// none is left: as many CTAs as the GPU holds at once then do all of them, and
// one tile's loads overlap another's stores.
//
// Tiles near each other share operands, and what is shared stays in the L2
// cache only while it is used by many CTAs at once. So the order goes in groups
// of rows: down the rows of a group first, then to the next column, and back
// again in the next group (serpentine).
//
//     group 2, along n:     0  2  4  6
//                           1  3  5  7
//                          14 12 10  8
//                          15 13 11  9
//
// In a cluster the CTAs take neighbouring tiles: the scheme orders blocks of
// cluster_m x cluster_n tiles.
#pragma once

#include <kiln/language/builder.h>
#include <kiln/base/export.h>
#include <kiln/language/value/value.h>

#include <functional>

namespace KILN_API kiln {

/// Which way the order goes through a group.
enum class Raster : std::uint8_t {
  along_n, ///< groups of rows
  along_m, ///< groups of columns
};

struct TileSchedulerOptions {
  bool is_persistent = false;
  /// CTAs of a persistent kernel at most; 0: as many as fit on the device.
  int ctas = 0;
  Raster raster = Raster::along_n;
  int group = 8; ///< rows (or columns) of blocks in a group
  bool is_serpentine = true;
  /// Tiles of the CTAs of a cluster. The kernel's cluster is that many CTAs
  /// along x; the rank of the CTA for tile (i, j) of it is i + j * cluster_m.
  int cluster_m = 1, cluster_n = 1;
  /// CTAs that share a tile, each a part of the work (OutputTile::rank): of
  /// a cluster with one tile, so that the kernel's cluster is that many along
  /// x; or of the grid, which then goes through all tiles with one rank after
  /// another, so that neighbours are of neighbouring tiles and the same part.
  int split = 1;
  bool is_split_by_grid = false;

  int cluster_ctas() const {
    return cluster_m * cluster_n * (is_split_by_grid ? 1 : split);
  }
  /// CTAs of one block of tiles.
  int block_ctas() const { return cluster_m * cluster_n * split; }
};

/// A tile of the output, by its number along each dimension.
struct OutputTile {
  Value m, n, batch;
  Value rank;   ///< of this CTA among those that share the tile
  Value number; ///< among all tiles, in their order
};

class TileScheduler {
public:
  /// Sets the kernel's grid. Tiles beyond the matrix appear where a cluster
  /// reaches over its edge.
  TileScheduler(KernelBuilder &kb, const Dim &tiles_m, const Dim &tiles_n,
                const Dim &batch = 1, const TileSchedulerOptions &options = {},
                Where where = Where::current());

  /// The number of this CTA's first tile: for what is made ready before it.
  Value first_number(Where where = Where::current()) const;

  /// Run `body` for each tile of this CTA, in order.
  void for_each(const std::function<void(const OutputTile &)> &body,
                Where where = Where::current()) const;
  /// Only every `step`-th from the `first` on: consumers that take turns.
  void for_each(At first, int step,
                const std::function<void(const OutputTile &)> &body,
                Where where = Where::current()) const;

  /// The place of this CTA among the tiles of its cluster.
  Value cluster_row(Where where = Where::current()) const;
  Value cluster_column(Where where = Where::current()) const;

private:
  Value first_block() const;
  Value number(const Value &block) const;
  OutputTile tile(const Value &block) const;
  Value rank() const;

  Dim blocks_m_, blocks_n_, blocks_;
  bool has_batch_;
  TileSchedulerOptions options_;
};

} // namespace kiln
