// softmax: rows through shared memory, in and out by TMA.
//
// A slot of shared memory holds four rows, one for each warp of a warpgroup.
// The rows are replaced where they lie and stored from there; a slot goes back
// to the producer when the store has read it.
//
//     producer     | load 0 | load 1 | load 2 | ...
//     consumer 0   |  row maxima, exp, sums of 0 | store 0 | the same of 2 ...
//     consumer 1   |            the same of 1    | store 1 | ...
#include <kiln/kernels/softmax.h>

#include <kiln/kiln.h>

#include <fmt/format.h>

#include <algorithm>

namespace kiln {

static constexpr int kConsumers = 2;
static constexpr int kRows = 4; ///< of a slot: one for each warp
static constexpr int kLanes = 32;
static constexpr double kLog2E = 1.4426950408889634;

static void check(const SoftmaxProblem &problem) {
  int bytes = size_bytes(problem.type);
  if (problem.type != Type::bf16 && problem.type != Type::f16 &&
      problem.type != Type::f32)
    throw UserError(fmt::format("softmax of bf16, f16 or f32, not of {}",
                                name(problem.type)));
  if (problem.rows.is_constant() && problem.rows.constant() < 1)
    throw UserError(fmt::format("a softmax of {} rows; at least 1 is needed",
                                problem.rows.constant()));
  if (problem.columns < 1 || problem.columns > 6144 ||
      problem.columns * bytes % 16)
    throw UserError(fmt::format(
        "rows of {} elements of {}; use a multiple of {} up to 6144",
        problem.columns, name(problem.type), 16 / bytes));
}

/// Replace one row of a tile by its softmax: the calling warp's. Each lane has
/// the elements of some 16-byte pieces, a warp's width apart.
static void softmax_row(const SharedTile &tile, int columns) {
  Type type = tile.layout().type;
  int count = 16 / size_bytes(type);
  Value row = warp_id() & (kRows - 1);
  Value first = lane_id() * count;
  std::vector<Values> pieces;
  for (int at = 0; at < columns; at += count * kLanes) {
    Values piece = cast(tile.load_vector(row, first + at, count), f32);
    if (at + count * kLanes > columns) // what lies outside was read as 0
      for (Value &x : piece)
        x = select(first + at < columns, x, -INFINITY);
    pieces.push_back(std::move(piece));
  }
  Value largest = pieces[0][0];
  for (const Values &piece : pieces)
    for (const Value &x : piece)
      largest = max(largest, x);
  largest = warp_reduce(largest, Reduction::max);
  // exp(x - max) = 2^(x log2 e - max log2 e)
  Value shift = largest * -kLog2E;
  Value sum = constant(f32, 0.0);
  for (Values &piece : pieces)
    for (Value &x : piece) {
      x = exp2(fma(x, kLog2E, shift));
      sum = sum + x;
    }
  Value scale = rcp(warp_reduce(sum, Reduction::add));
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    Values result;
    for (const Value &x : pieces[i])
      result.push_back(x * scale);
    tile.store_vector(row, first + static_cast<int>(i) * count * kLanes,
                      cast(result, type));
  }
}

Module build_softmax(const SoftmaxProblem &problem) {
  check(problem);
  Type type = problem.type;
  // A TMA box is at most 256 wide; a warp reads a piece of 512 bytes at once.
  int panel = kLanes * 16 / size_bytes(type);
  int width = (problem.columns + panel - 1) / panel * panel;
  TmaOptions options{.tile = {kRows, width}, .panel = panel};
  KernelBuilder kb(fmt::format("softmax_{}x{}_{}", problem.rows.to_string(),
                               problem.columns, name(type)),
                   {.warpgroups = kConsumers + 1});
  TmaTensor x =
      kb.tensor_map("x", type, {problem.rows, problem.columns}, options);
  TmaTensor y =
      kb.tensor_map("y", type, {problem.rows, problem.columns}, options);
  if (!problem.rows.is_constant())
    kb.dim(problem.rows.argument_name());
  Dim tiles = ceil_div(problem.rows, kRows);
  kb.grid(min(tiles, Dim::argument("sms")));

  int stages = std::min(8, max_stages({x.tile()}));
  SharedTileArray slots = kb.shared_array(x.tile(), stages, {.name = "x"});
  MbarrierArray full = kb.mbarriers(stages, "full");
  MbarrierArray empty = kb.mbarriers(stages, "empty");
  one_thread([&] {
    for (int i = 0; i < stages; ++i) {
      full[i].init(1);
      empty[i].init(1);
    }
    fence_mbarrier_init();
  });
  sync_threads();

  warpgroup(kConsumers, {.registers = 40}, [&] {
    one_thread([&] {
      PipelineState state(stages, 1);
      for_range(block_id(), tiles, grid_size(), [&](Value tile) {
        empty[state.slot()].wait(state.parity());
        full[state.slot()].arrive_expect_tx(x.tile_bytes());
        tma_load(slots[state.slot()], x, {tile * kRows, 0}, full[state.slot()]);
        state.advance();
      });
    });
  });
  warpgroups(0, kConsumers, {.registers = 216}, [&](Value consumer) {
    PipelineState state(stages, 0);
    state.skip(consumer);
    Var held(i32, -1); // the slot whose store may still be reading
    Value first = block_id() + consumer * grid_size();
    for_range(first, tiles, grid_size() * kConsumers, [&](Value tile) {
      Value slot = state.slot();
      SharedTile rows = slots[slot];
      full[slot].wait(state.parity());
      softmax_row(rows, problem.columns);
      fence_async_shared();
      sync_warpgroup();
      one_thread([&] {
        tma_store(y, {tile * kRows, 0}, rows);
        tma_store_commit();
        tma_store_wait_read(1);
        if_(held >= 0, [&] { empty[held].arrive(); });
        held = slot;
      });
      state.skip(kConsumers);
    });
    one_thread([&] { tma_store_wait_read(0); });
  });
  return kb.module();
}

} // namespace kiln
