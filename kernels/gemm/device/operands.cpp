// operands: declare A and B for each layout, and copy their tiles.
#include "operands.h"
#include "copy_async.h"

#include <kiln/language/value/control.h>
#include <kiln/language/tile/copy.h>
#include <kiln/language/value/math.h>
#include <kiln/language/threads/threads.h>
#include <kiln/language/memory/tma.h>

namespace kiln::gemm_kernel {

int stored_extent(const GemmProblem &problem, const GemmSchedule &schedule,
                  int extent) {
  auto width = static_cast<int>(
      elements_in(problem.type, static_cast<int>(schedule.swizzle)));
  return width ? (extent + width - 1) / width * width : extent;
}

/// A tile of `mn` by `k` as it is stored. Without a swizzle it lies in core
/// matrices, 16 bytes wide.
static TileLayout stored_tile(const GemmProblem &problem,
                              const GemmSchedule &schedule, bool is_k_major,
                              int mn) {
  if (!is_k_major)
    mn = stored_extent(problem, schedule, mn);
  TileLayout tile{problem.type, mn, schedule.tile_k, schedule.swizzle};
  if (!is_k_major)
    std::swap(tile.rows, tile.columns);
  if (schedule.swizzle == Swizzle::none)
    tile.panel = static_cast<int>(elements_in(problem.type, 16));
  return tile;
}

TileLayout tile_of_a(const GemmProblem &problem, const GemmSchedule &schedule) {
  return stored_tile(problem, schedule, problem.a_is_k_major(),
                     schedule.tile_m);
}

TileLayout tile_of_b(const GemmProblem &problem, const GemmSchedule &schedule) {
  return stored_tile(problem, schedule, problem.b_is_k_major(),
                     schedule.tile_n / schedule.cta_group);
}

/// Pieces of factors lie in halves, as wide as a box can be.
static constexpr int kPieceHalf = kScalePieceBytes / 2;

/// Pieces of factors of so many rows, along the rows and along K.
struct ScalePieces {
  int rows, k;

  ScalePieces(const GemmProblem &problem, const GemmSchedule &schedule,
              int tile_rows)
      : rows(tile_rows / kScalePieceRows),
        k(step_blocks(problem, schedule) / kScalePieceBlocks) {}
};

static TileLayout tile_of_scales(const GemmProblem &problem,
                                 const GemmSchedule &schedule, int tile_rows) {
  ScalePieces pieces(problem, schedule, tile_rows);
  return {block_of(problem.scaling).type, pieces.rows * pieces.k * 2,
          kPieceHalf};
}

std::vector<TileLayout> slot_tiles(const KernelProblem &computed,
                                   const GemmSchedule &schedule) {
  const GemmProblem &problem = computed.problem;
  std::vector<TileLayout> tiles{tile_of_a(problem, schedule),
                                tile_of_b(problem, schedule)};
  bool a_by_tma = computed.a_uses_tma(), b_by_tma = computed.b_uses_tma();
  if (!a_by_tma && b_by_tma)
    std::swap(tiles[0], tiles[1]);
  if (has_scale_pieces(problem)) {
    int maps = a_by_tma + b_by_tma;
    for (int rows : {schedule.tile_n, schedule.tile_m}) // B's last
      tiles.insert(tiles.begin() + maps,
                   tile_of_scales(problem, schedule, rows));
  }
  return tiles;
}

/// The shape of a matrix in the kernel, with a batch in front where there is
/// one.
static std::vector<Dim> with_batch(bool has_batch, std::vector<Dim> dims,
                                   const Dim &first) {
  if (has_batch)
    dims.insert(dims.begin(), first);
  return dims;
}

/// Copies of `parts` of a tile.
static TmaOptions map_options(const TileLayout &tile, bool has_batch,
                              int parts) {
  TmaOptions options{.tile = {tile.rows / parts, tile.columns},
                     .swizzle = tile.swizzle,
                     .panel = tile.panel};
  if (has_batch)
    options.tile.insert(options.tile.begin(), 1);
  return options;
}

TmaTensor declare_map(KernelBuilder &kb, const std::string &name,
                      const TileLayout &tile, const StoredMatrix &matrix,
                      const Dim &batch, int parts) {
  bool has_batch = matrix.has_batch(batch);
  return kb.tensor_map(
      name, tile.type,
      with_batch(has_batch, {matrix.rows, matrix.columns}, batch),
      map_options(tile, has_batch, parts),
      with_batch(has_batch, {matrix.stride, 1}, matrix.product));
}

Tensor declare_tensor(KernelBuilder &kb, const std::string &name, Type type,
                      const StoredMatrix &matrix, const Dim &batch) {
  bool has_batch = matrix.has_batch(batch);
  return kb.tensor(name, type,
                   with_batch(has_batch, {matrix.rows, matrix.columns}, batch),
                   with_batch(has_batch, {matrix.stride, 1}, matrix.product));
}

Operands::Operands(KernelBuilder &kb, const KernelProblem &computed,
                   const GemmSchedule &schedule, int sms)
    : problem_(computed), schedule_(schedule), sms_(sms),
      k_tiles_(ceil_div(problem().k, schedule.tile_k)) {
  TileLayout tile_a = tile_of_a(problem(), schedule);
  TileLayout tile_b = tile_of_b(problem(), schedule);
  // CTAs in a row of the cluster share A, those in a column B.
  if (schedule.is_multicast) {
    a_parts_.parts = schedule.cluster_n;
    b_parts_.parts = schedule.cluster_m;
  }
  auto declare_a = [&](const char *name) {
    a_ = declare(kb, name, tile_a, problem_.a(), problem_.a_suits_tma(),
                 a_parts_.parts);
  };
  auto declare_b = [&](const char *name) {
    b_ = declare(kb, name, tile_b, problem_.b(), problem_.b_suits_tma(),
                 b_parts_.parts);
  };
  // The caller's A comes first.
  if (problem_.is_swapped) {
    declare_b("a");
    declare_a("b");
  } else {
    declare_a("a");
    declare_b("b");
  }
  if (has_scale_pieces(problem()) || problem().scaling == Scaling::blocks)
    declare_scales(kb);
}

void Operands::declare_workspaces(KernelBuilder &kb) {
  if (!problem_.is_repacked)
    return;
  auto declare = [&](const char *name, Source &source, const TileLayout &tile,
                     int parts, bool suits) {
    if (suits)
      return;
    if (!problem_.has_tma)
      source.tensor = repack_.add(kb, name, *source.tensor);
    else
      source.map = kb.tensor_map(
          repack_.add(kb, name, *source.tensor),
          map_options(tile, source.tensor->shape().size() == 3, parts));
  };
  bool is_swapped = problem_.is_swapped;
  declare(is_swapped ? "b_rows" : "a_rows", a_, tile_of_a(problem(), schedule_),
          a_parts_.parts, problem_.a_suits_tma());
  declare(is_swapped ? "a_rows" : "b_rows", b_, tile_of_b(problem(), schedule_),
          b_parts_.parts, problem_.b_suits_tma());
}

/// A matrix of factors for each product.
void Operands::declare_scales(KernelBuilder &kb) {
  const GemmProblem &shape = problem();
  const Dim &batch = shape.batch;
  bool has_batch = batch != Dim(1);
  ScalingBlock block = block_of(shape.scaling);
  Dim blocks = ceil_div(shape.k, block.k);
  auto declare_pieces = [&](const char *name, const Dim &rows, int tile_rows) {
    ScalePieces pieces(shape, schedule_, tile_rows);
    TmaOptions options{.tile = {pieces.rows, pieces.k * 2, kPieceHalf}};
    if (has_batch)
      options.tile.insert(options.tile.begin(), 1);
    return Source{
        kb.tensor_map(
            name, block.type,
            with_batch(has_batch,
                       {ceil_div(rows, kScalePieceRows),
                        ceil_div(blocks, kScalePieceBlocks) * 2, kPieceHalf},
                       batch),
            options),
        {}};
  };
  if (shape.scaling == Scaling::blocks) { // of A, B unswapped
    a_scales_.tensor =
        kb.tensor("a_scales", block.type,
                  with_batch(has_batch, {blocks, shape.m}, batch));
    b_scales_.tensor = kb.tensor(
        "b_scales", block.type,
        with_batch(has_batch, {ceil_div(shape.n, block.b_columns), blocks},
                   batch));
    return;
  }
  auto declare_a = [&](const char *name) {
    a_scales_ = declare_pieces(name, shape.m, schedule_.tile_m);
  };
  auto declare_b = [&](const char *name) {
    b_scales_ = declare_pieces(name, shape.n, schedule_.tile_n);
  };
  if (problem_.is_swapped) {
    declare_b("a_scales");
    declare_a("b_scales");
  } else {
    declare_a("a_scales");
    declare_b("b_scales");
  }
}

Operands::Source Operands::declare(KernelBuilder &kb, const char *name,
                                   const TileLayout &tile,
                                   const StoredMatrix &matrix, bool uses_tma,
                                   int parts) const {
  const Dim &batch = problem().batch;
  if (uses_tma && problem_.has_tma)
    return {declare_map(kb, name, tile, matrix, batch, parts), {}};
  return {{}, declare_tensor(kb, name, problem().type, matrix, batch)};
}

/// The ranks of the other CTAs that load what this CTA needs: those in its row
/// and in its column of the cluster.
static std::vector<Value> peers(const TileScheduler &scheduler,
                                const GemmSchedule &schedule) {
  std::vector<Value> ranks;
  Value i = scheduler.cluster_row(), j = scheduler.cluster_column();
  for (int step = 1; step < schedule.cluster_n; ++step)
    ranks.push_back(i + (j + step) % schedule.cluster_n * schedule.cluster_m);
  for (int step = 1; step < schedule.cluster_m; ++step)
    ranks.push_back((i + step) % schedule.cluster_m + j * schedule.cluster_m);
  return ranks;
}

void Operands::make_slots(KernelBuilder &kb, const TileScheduler &scheduler,
                          const PipelineOptions &options) {
  if (problem_.has_tma)
    return make_pipeline(kb, scheduler, options);
  a_slots_ = kb.shared_array(tile_of_a(problem(), schedule_), schedule_.stages,
                             {.name = "a"});
  b_slots_ = kb.shared_array(tile_of_b(problem(), schedule_), schedule_.stages,
                             {.name = "b"});
}

SharedTile Operands::first_slot() const {
  return pipeline_ ? pipeline_->tiles(0)[0] : a_slots_[0];
}

void Operands::make_pipeline(KernelBuilder &kb, const TileScheduler &scheduler,
                             PipelineOptions options) {
  if (schedule_.cta_group > 1)
    first_column_ =
        scheduler.cluster_row() * (schedule_.tile_n / schedule_.cta_group);
  if (!uses_tma()) {
    options.is_by_threads = true;
    std::vector<TileLayout> tiles = slot_tiles(problem_, schedule_);
    std::vector<TmaTensor> maps;
    for (const Source *source : {&a_, &b_})
      if (source->map)
        maps.push_back(*source->map);
    if (has_scale_pieces(problem()))
      maps.insert(maps.end(), {*a_scales_.map, *b_scales_.map});
    tiles.erase(tiles.begin(), tiles.begin() + static_cast<int>(maps.size()));
    pipeline_ = std::make_unique<Pipeline>(kb, schedule_.stages, maps, tiles,
                                           options, Where::current());
    return;
  }
  int rows = schedule_.cluster_m, columns = schedule_.cluster_n;
  if (schedule_.is_multicast && rows * columns > 1) {
    options.parts = {a_parts_.parts, b_parts_.parts};
    options.peers = peers(scheduler, schedule_);
    Value i = scheduler.cluster_row(), j = scheduler.cluster_column();
    int row_mask = 0;
    for (int column = 0; column < columns; ++column)
      row_mask |= 1 << (column * rows);
    a_parts_.part = j;
    a_parts_.mask = constant(i32, row_mask) << i;
    b_parts_.part = i;
    b_parts_.mask = constant(i32, (1 << rows) - 1) << (j * rows);
  }
  std::vector<TmaTensor> maps = {*a_.map, *b_.map};
  if (has_scale_pieces(problem()))
    maps.insert(maps.end(), {*a_scales_.map, *b_scales_.map});
  pipeline_ = std::make_unique<Pipeline>(kb, schedule_.stages, maps, options,
                                         Where::current());
}

/// The coordinates (mn, k) of a tile as its matrix is stored.
static std::vector<At> stored_origin(bool has_batch, bool is_k_major,
                                     const OutputTile &tile, const Value &mn,
                                     const Value &k) {
  std::vector<At> origin;
  if (has_batch)
    origin.push_back(tile.batch);
  origin.push_back(is_k_major ? mn : k);
  origin.push_back(is_k_major ? k : mn);
  return origin;
}

bool Operands::is_read_once(const Dim &other, int tile_extent) const {
  Dim tiles = problem_.tiles(schedule_);
  return other.is_constant() && other.constant() <= tile_extent &&
         tiles.is_constant() &&
         tiles.constant() <= std::int64_t{sms_} * schedule_.occupancy;
}

Operands::Origins Operands::origins(const OutputTile &tile,
                                    const Value &k_tile) const {
  Value k = k_tile * schedule_.tile_k;
  const Dim &batch = problem().batch;
  Value column = tile.n * schedule_.tile_n;
  if (first_column_)
    column = column + *first_column_;
  return {stored_origin(problem_.a().has_batch(batch), problem().a_is_k_major(),
                        tile, tile.m * schedule_.tile_m, k),
          stored_origin(problem_.b().has_batch(batch), problem().b_is_k_major(),
                        tile, column, k)};
}

void Operands::copy(const OutputTile &tile, const Value &k_tile,
                    const Value &slot, int threads) const {
  auto copy_one = [&](const SharedTile &to, const Tensor &from,
                      const std::vector<At> &at, bool is_asynchronous) {
    if (!is_asynchronous)
      return copy_tile(CopyScope::cta, to, from, at);
    Tensor matrix = at.size() == 3 ? from.index(0, at[0]) : from;
    copy_async(to, matrix, value_of(at[at.size() - 2]), value_of(at.back()),
               threads);
  };
  auto [at_a, at_b] = origins(tile, k_tile);
  copy_one(a_slots_[slot], *a_.tensor, at_a, problem_.a_uses_tma());
  copy_one(b_slots_[slot], *b_.tensor, at_b, problem_.b_uses_tma());
}

void Operands::load(const OutputTile &tile, At k_tile) {
  auto [at_a, at_b] = origins(tile, value_of(k_tile));
  // What is read once makes room in L2 for what others read again.
  auto hinted = [&](const TmaTensor &map, const Dim &other, int tile_extent) {
    return is_read_once(other, tile_extent)
               ? map.with_policy(l2_policy(L2Eviction::first))
               : map;
  };
  auto load_maps = [&](const Slot &slot) {
    if (a_.map)
      slot.load(hinted(*a_.map, problem().n, schedule_.tile_n), at_a, a_parts_);
    if (b_.map)
      slot.load(hinted(*b_.map, problem().m, schedule_.tile_m), at_b, b_parts_);
    if (has_scale_pieces(problem()))
      load_scales(slot, tile, value_of(k_tile));
  };
  if (uses_tma())
    return pipeline_->produce(load_maps);
  pipeline_->produce_by_threads([&](const Slot &slot) {
    if (first_copied() > 0)
      one_thread([&] { load_maps(slot); });
    if (a_.is_copied_by_tile())
      copy_tile(CopyScope::warpgroup, slot.tile(index_of_a()), *a_.tensor,
                at_a);
    if (b_.is_copied_by_tile())
      copy_tile(CopyScope::warpgroup, slot.tile(index_of_b()), *b_.tensor,
                at_b);
  });
}

void Operands::load_scales(const Slot &slot, const OutputTile &tile,
                           const Value &k_tile) const {
  auto load = [&](const TmaTensor &map, const Value &number, int rows) {
    ScalePieces pieces(problem(), schedule_, rows);
    std::vector<At> origin = {number * pieces.rows, k_tile * (pieces.k * 2), 0};
    if (problem().batch != Dim(1))
      origin.insert(origin.begin(), tile.batch);
    slot.load(map, origin);
  };
  load(*a_scales_.map, tile.m, schedule_.tile_m);
  load(*b_scales_.map, tile.n, schedule_.tile_n);
}

Value Operands::a_factor(const OutputTile &tile, const Value &block,
                         Value row) const {
  Tensor factors = *a_scales_.tensor;
  if (problem().batch != Dim(1))
    factors = factors.index(0, tile.batch);
  // Rows beyond the matrix are not stored.
  return factors(block, min(row, value_of(At(problem().m)) - 1));
}

Value Operands::b_factor(const OutputTile &tile, const Value &block) const {
  Tensor factors = *b_scales_.tensor;
  if (problem().batch != Dim(1))
    factors = factors.index(0, tile.batch);
  int columns = block_of(problem().scaling).b_columns;
  return factors(tile.n * schedule_.tile_n / columns, block);
}

/// Copy the tile at (batch,) row, column by way of registers.
void Operands::copy_tile(CopyScope scope, const SharedTile &to,
                         const Tensor &from, const std::vector<At> &at) const {
  Tensor matrix = at.size() == 3 ? from.index(0, at[0]) : from;
  const At &row = at[at.size() - 2], &column = at.back();
  kiln::copy(scope, to,
             matrix.slice(0, row, to.rows(), to.rows())
                 .slice(1, column, to.columns(), to.columns()));
}

SharedTile Operands::as_a(const SharedTile &stored) const {
  return problem().a_is_k_major() ? stored : stored.transpose();
}

SharedTile Operands::as_b(const SharedTile &stored) const {
  if (problem().b_is_k_major())
    return stored.transpose();
  int columns = schedule_.tile_n / schedule_.cta_group;
  return stored.columns() == columns
             ? stored
             : stored.slice(0, 0, schedule_.tile_k, columns);
}

} // namespace kiln::gemm_kernel
