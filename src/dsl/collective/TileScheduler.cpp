// TileScheduler: from a running number to a tile, and the loop over them.
#include "dsl/kernel/LocationScope.h"
#include "dsl/kernel/State.h"
#include "dsl/collective/TileRaster.h"
#include "kiln/language/threads/cluster.h"
#include "kiln/language/value/control.h"
#include "kiln/language/threads/threads.h"
#include "kiln/language/collective/tile_scheduler.h"
#include "support/Error.h"

namespace kiln {

/// Refuse an order that is none.
static void checkOptions(const TileSchedulerOptions &options,
                         const ClusterShape &cluster, const Where &where) {
  if (options.group < 1)
    userErrorAt(where, "groups of {} tiles; at least 1 is needed",
                options.group);
  if (options.ctas < 0)
    userErrorAt(where, "{} CTAs; 0 stands for as many as fit", options.ctas);
  int ctas = options.cluster_ctas();
  bool isCrowded = options.split > 1 && !options.is_split_by_grid &&
                   options.cluster_m * options.cluster_n != 1;
  if (options.split < 1 || isCrowded)
    userErrorAt(where,
                "{} CTAs share a tile in clusters of {}x{} tiles; at least 1 "
                "does, and more where a cluster has one tile or the grid "
                "divides it",
                options.split, options.cluster_m, options.cluster_n);
  if (options.cluster_m < 1 || options.cluster_n < 1 || cluster.x != ctas ||
      cluster.y != 1 || cluster.z != 1)
    userErrorAt(where,
                "the tiles of a cluster are {}x{} and the kernel's clusters "
                "{}x{}x{} CTAs; give it {}x1x1",
                options.cluster_m, options.cluster_n, cluster.x, cluster.y,
                cluster.z, ctas);
  if (options.is_persistent && options.ctas % ctas != 0)
    userErrorAt(where,
                "{} CTAs are no whole number of clusters of {}; use a multiple",
                options.ctas, ctas);
}

TileScheduler::TileScheduler(KernelBuilder &kb, const Dim &tiles_m,
                             const Dim &tiles_n, const Dim &batch,
                             const TileSchedulerOptions &options, Where where)
    : blocks_m_(ceil_div(tiles_m, options.cluster_m)),
      blocks_n_(ceil_div(tiles_n, options.cluster_n)),
      blocks_(blocks_m_ * blocks_n_ * batch), has_batch_(batch != Dim(1)),
      options_(options) {
  const KernelOptions &kernel = kb.state().options;
  checkOptions(options, kernel.cluster, where);
  int ctas = options.block_ctas();
  if (!options.is_persistent) {
    kb.grid(blocks_ * ctas);
    return;
  }
  Dim most = options.ctas ? Dim(options.ctas / ctas)
                          : Dim::argument("sms") * kernel.ctas_per_sm / ctas;
  kb.grid(min(blocks_, max(most, 1)) * ctas);
}

/// Which of the kernel's clusters the CTA is in.
static Value clusterNumber(const TileSchedulerOptions &options) {
  int ctas = options.cluster_ctas();
  return ctas == 1 ? block_id() : block_id() / ctas;
}

Value TileScheduler::rank() const {
  if (options_.split == 1)
    return constant(i32, 0);
  if (!options_.is_split_by_grid)
    return cluster_rank();
  return clusterNumber(options_) / value_of(blocks_);
}

/// Of a persistent kernel's, the one it begins with.
Value TileScheduler::first_block() const {
  Value cluster = clusterNumber(options_);
  bool hasRanks = options_.split > 1 && options_.is_split_by_grid;
  return hasRanks ? cluster % value_of(blocks_) : cluster;
}

/// Of this CTA's tile in that block.
Value TileScheduler::number(const Value &block) const {
  int tiles = options_.cluster_m * options_.cluster_n;
  return tiles == 1 ? block : block * tiles + cluster_rank();
}

Value TileScheduler::first_number(Where where) const {
  LocationScope scope(where);
  return number(first_block());
}

Value TileScheduler::cluster_row(Where where) const {
  if (options_.cluster_m == 1)
    return constant(i32, At(0, where));
  Value rank = cluster_rank(where);
  return options_.cluster_n == 1 ? rank : rank % At(options_.cluster_m, where);
}

Value TileScheduler::cluster_column(Where where) const {
  if (options_.cluster_n == 1)
    return constant(i32, At(0, where));
  Value rank = cluster_rank(where);
  return options_.cluster_m == 1 ? rank : rank / At(options_.cluster_m, where);
}

RasterPlace rasterPlace(const Value &index, const RasterRows &rows,
                        const Value &columns, int group, bool isSerpentine) {
  if (rows.known && *rows.known <= group) { // there is one
    int height = static_cast<int>(*rows.known);
    Value column = index / height;
    return {index - column * height, column};
  }
  Value perGroup = columns * group;
  Value which = index / perGroup;
  Value first = which * group;
  Value left = rows.count - first;
  Value height = min(left, group);
  Value inGroup = index - which * perGroup;
  Value column = rows.known ? inGroup / group : inGroup / height;
  // Of rows that are known the last group has its own division, of a number of
  // its own, or LLVM makes one of both, by a register: the threads of a CTA
  // that has one short tile would all wait for it.
  if (int rest = rows.known ? static_cast<int>(*rows.known % group) : 0) {
    int before = static_cast<int>(*rows.known) - rest;
    column = select(left < group, (index - columns * before) / rest, column);
  }
  Value row = first + (inGroup - column * height);
  if (isSerpentine)
    column = select((which & 1) == 1, columns - 1 - column, column);
  return {row, column};
}

OutputTile TileScheduler::tile(const Value &block) const {
  Value rest = block;
  Value batch = constant(i32, 0);
  if (has_batch_) {
    Value perBatch = value_of(blocks_m_ * blocks_n_);
    batch = rest / perBatch;
    rest = rest - batch * perBatch;
  }
  bool isAlongN = options_.raster == Raster::along_n;
  // Rows are what is grouped: of the matrix, or of its transpose.
  const Dim &rows = isAlongN ? blocks_m_ : blocks_n_;
  const Dim &columns = isAlongN ? blocks_n_ : blocks_m_;
  RasterRows counted{value_of(rows)};
  if (rows.is_constant())
    counted.known = rows.constant();
  auto [row, column] = rasterPlace(rest, counted, value_of(columns),
                                   options_.group, options_.is_serpentine);
  Value m = (isAlongN ? row : column) * options_.cluster_m + cluster_row();
  Value n = (isAlongN ? column : row) * options_.cluster_n + cluster_column();
  return {m, n, batch, rank(), number(block)};
}

void TileScheduler::for_each(
    const std::function<void(const OutputTile &)> &body, Where where) const {
  for_each(At(0, where), 1, body, where);
}

void TileScheduler::for_each(
    At first, int step, const std::function<void(const OutputTile &)> &body,
    Where where) const {
  auto outside = collectiveLine;
  LocationScope scope(where);
  Value start = first_block();
  auto run = [&](const Value &block) {
    OutputTile at = tile(block);
    UserCode user(outside);
    body(at);
  };
  if (!options_.is_persistent) {
    if (step != 1)
      userErrorAt(where,
                  "turns of {} consumers, and each CTA has one tile; "
                  "make the kernel persistent",
                  step);
    return run(start);
  }
  int ctas = options_.block_ctas();
  Value stride = ctas == 1 ? grid_size() : grid_size() / ctas;
  start = start + value_of(first) * stride;
  for_range(start, blocks_, stride * step, run);
}

} // namespace kiln
