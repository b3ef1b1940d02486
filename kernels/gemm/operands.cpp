// operands: declare the tensors of a GEMM for each layout.
#include "operands.h"

#include <kiln/threads.h>

namespace kiln::gemm {

TileLayout tile_of_a(const GemmProblem &problem, const GemmSchedule &schedule) {
  int rows = schedule.tile_m, columns = schedule.tile_k;
  if (!problem.a_is_k_major())
    std::swap(rows, columns);
  return {problem.type, rows, columns, Swizzle::b128};
}

TileLayout tile_of_b(const GemmProblem &problem, const GemmSchedule &schedule) {
  int rows = schedule.tile_k, columns = schedule.tile_n;
  if (problem.b_is_k_major())
    std::swap(rows, columns);
  return {problem.type, rows, columns, Swizzle::b128};
}

struct Operands::Parts {
  TmaTensor a, b;
  Tensor d;
  const GemmProblem &problem;
  const GemmSchedule &schedule;
};

/// Declare a runtime dimension as an argument; a constant needs none.
static Dim declare_dim(KernelBuilder &kb, const Dim &dim) {
  return dim.is_constant() ? dim : kb.dim(dim.argument_name());
}

/// A matrix read by TMA: rows and columns as stored.
static TmaTensor declare_map(KernelBuilder &kb, const std::string &name,
                             const TileLayout &tile, const Dim &rows,
                             const Dim &columns) {
  return kb.tensor_map(
      name, tile.type, {rows, columns},
      {.tile = {tile.rows, tile.columns}, .swizzle = tile.swizzle});
}

Operands::Parts Operands::declare(KernelBuilder &kb, const GemmProblem &problem,
                                  const GemmSchedule &schedule) {
  const auto &[m, n, k, type, out, layout] = problem;
  bool a_rows = problem.a_is_k_major(), b_rows = !problem.b_is_k_major();
  TmaTensor a = declare_map(kb, "a", tile_of_a(problem, schedule),
                            a_rows ? m : k, a_rows ? k : m);
  TmaTensor b = declare_map(kb, "b", tile_of_b(problem, schedule),
                            b_rows ? k : n, b_rows ? n : k);
  Tensor d = kb.tensor("d", out, {m, n});
  for (const Dim &dim : {m, n, k})
    declare_dim(kb, dim);
  return {a, b, d, problem, schedule};
}

Operands::Operands(KernelBuilder &kb, const GemmProblem &problem,
                   const GemmSchedule &schedule)
    : Operands(declare(kb, problem, schedule)) {
  Dim tiles_m = ceil_div(problem.m, schedule.tile_m);
  Dim tiles_n = ceil_div(problem.n, schedule.tile_n);
  kb.grid(tiles_m, tiles_n);
}

Operands::Operands(const Parts &parts)
    : a(parts.a), b(parts.b), d(parts.d),
      k_tiles(ceil_div(parts.problem.k, parts.schedule.tile_k)),
      row(block_id(Axis::x) * parts.schedule.tile_m),
      column(block_id(Axis::y) * parts.schedule.tile_n),
      tile_k_(parts.schedule.tile_k),
      a_is_k_major_(parts.problem.a_is_k_major()),
      b_is_k_major_(parts.problem.b_is_k_major()) {
  auto divides = [](int tile, const Dim &dim) {
    return dim.is_constant() && dim.constant() % tile == 0;
  };
  store.is_inside = divides(parts.schedule.tile_m, parts.problem.m) &&
                    divides(parts.schedule.tile_n, parts.problem.n);
  store.column_multiple = parts.schedule.tile_n;
}

void Operands::load(const Slot &slot, At k_tile) const {
  Value k = value_of(k_tile) * tile_k_;
  if (a_is_k_major_)
    slot.load(a, {row, k});
  else
    slot.load(a, {k, row});
  if (b_is_k_major_)
    slot.load(b, {column, k});
  else
    slot.load(b, {k, column});
}

void Operands::multiply(Accumulator &accumulator, const Slot &slot) const {
  SharedTile tile_a = a_is_k_major_ ? slot[a] : slot[a].transpose();
  SharedTile tile_b = b_is_k_major_ ? slot[b].transpose() : slot[b];
  accumulator.mma(tile_a, tile_b);
}

} // namespace kiln::gemm
