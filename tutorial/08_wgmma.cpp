// Lesson 8: all that a wgmma can do. Goes back to a kernel without roles and
// adds the knobs of the multiplication, each to be turned by itself:
//
//     D[m, n] = A[m, k] * B[k, n] + C[m, n]      f16 * f16, f32 for C and D
//
//     is_a_in_registers    A from registers, or from shared memory
//     instruction_n        columns of one instruction, 16 to 256
//     warpgroups           one or two share a tile, each with an accumulator
//     is_b_transposed      B is stored [n, k]: its k is contiguous
//     starts_from_c        the accumulator begins as C, not as nothing
//     keeps_one_in_flight  wait for the wgmma of the turn before, or the own
//     one
#include "lessons.h"

using namespace kiln;

namespace lessons {

// Who computes what. An instruction has 64 rows, so that two warpgroups divide
// the rows of a tile between them where there are 128 or more, and its columns
// where there are not. A part of a tile is a slice: nothing moves, and the
// descriptors point to where it begins.
namespace {
struct Share {
  int rows, columns;
  Value row, column; ///< in the tile

  explicit Share(const WgmmaOptions &options)
      : rows(options.tile_m), columns(options.tile_n), row(constant(i32, 0)),
        column(constant(i32, 0)) {
    if (options.warpgroups == 1)
      return;
    bool by_rows = options.tile_m >= 128;
    (by_rows ? rows : columns) /= 2;
    (by_rows ? row : column) = warpgroup_id() * (by_rows ? rows : columns);
  }
};
} // namespace

// A tile of an operand as TMA brings it: with the widest swizzle that divides
// its rows, 128 bytes from 64 columns on.
static TmaTensor operand(KernelBuilder &kb, const char *name, int rows,
                         int columns, int tile_rows, int tile_columns) {
  return kb.tensor_map(name, f16, {rows, columns},
                       {.tile = {tile_rows, tile_columns},
                        .swizzle = default_swizzle(f16, tile_columns)});
}

// One step of the loop. wgmma takes [rows, k] and [k, columns]; transpose() of
// a tile stored [n, k] is a [k, n] tile, and no number moves: the instruction
// has a bit for it, of f16 and bf16.
//
// In registers A lies as the instruction wants it, two neighbours in each and
// four registers for 16 of k (RegisterLayout::wgmma_operand). Here they come
// from shared memory, which gains nothing. It is for an A that has to be
// computed first: scaled, converted, or the softmax of another product.
static void multiply(Accumulator &acc, const Share &share,
                     const WgmmaOptions &options, const SharedTile &a_tile,
                     const SharedTile &b_tile) {
  SharedTile a = a_tile.slice(share.row, 0, share.rows, options.tile_k);
  SharedTile b = options.is_b_transposed ? b_tile.transpose() : b_tile;
  b = b.slice(0, share.column, options.tile_k, share.columns);
  if (!options.is_a_in_registers)
    return acc.mma(a, b);
  auto layout = RegisterLayout::wgmma_operand(f16, share.rows, options.tile_k);
  acc.mma(load_tile(layout, a), b);
}

// The kernel. Each turn of the loop loads one tile of A and of B, waits for it,
// and multiplies. Where each turn waits for its own wgmma one slot is enough,
// and TMA and tensor core take turns. The other loop has two slots and waits
// for the wgmma of the turn before, as late as it can: when its own tiles have
// arrived. So one wgmma is in flight while the next tiles are loaded. A in
// registers could not bear more: they are written again in each turn. The
// thread that loads learns by sync_threads that all warps have come as far.
//
// The first turn stands before the loop: with a wgmma in flight and an
// accumulator that no wgmma wrote the assembler would serialize them (C7515).
Module gemm_wgmma(const GemmShape &shape, const WgmmaOptions &options) {
  KernelBuilder kb("gemm_wgmma", {.warpgroups = options.warpgroups});
  auto [tile_m, tile_n, tile_k] =
      std::array{options.tile_m, options.tile_n, options.tile_k};
  TmaTensor a = operand(kb, "a", shape.m, shape.k, tile_m, tile_k);
  TmaTensor b = options.is_b_transposed
                    ? operand(kb, "b", shape.n, shape.k, tile_n, tile_k)
                    : operand(kb, "b", shape.k, shape.n, tile_k, tile_n);
  std::optional<Tensor> c;
  if (options.starts_from_c)
    c = kb.tensor("c", f32, {shape.m, shape.n});
  Tensor d = kb.tensor("d", f32, {shape.m, shape.n});
  kb.grid(ceil_div(shape.m, tile_m), ceil_div(shape.n, tile_n));

  int slots = options.keeps_one_in_flight ? 2 : 1;
  SharedTileArray a_slots = kb.shared_array(a.tile(), slots, {.name = "a"});
  SharedTileArray b_slots = kb.shared_array(b.tile(), slots, {.name = "b"});
  MbarrierArray full = kb.mbarriers(slots, "full");
  one_thread([&] {
    for (int i = 0; i < slots; ++i)
      full[i].init(1);
    fence_mbarrier_init();
  });
  sync_threads();

  Share share(options);
  Value tile_row = block_id(Axis::x) * tile_m;
  Value tile_column = block_id(Axis::y) * tile_n;
  Value row = tile_row + share.row, column = tile_column + share.column;
  Accumulator acc(f32, share.rows, share.columns, options.instruction_n);
  if (c)
    acc.start_from(
        load_tile(acc.layout(), *c, {row, column}, {.column_multiple = 8}));
  auto turn = [&](const Value &i) {
    Value slot = i % slots;
    SharedTile a_tile = a_slots[slot];
    SharedTile b_tile = b_slots[slot];
    Mbarrier loaded = full[slot];
    one_thread([&] {
      Value k = i * tile_k;
      loaded.arrive_expect_tx(a.tile_bytes() + b.tile_bytes());
      tma_load(a_tile, a, {tile_row, k}, loaded);
      if (options.is_b_transposed)
        tma_load(b_tile, b, {tile_column, k}, loaded);
      else
        tma_load(b_tile, b, {k, tile_column}, loaded);
    });
    loaded.wait(i / slots & 1);
    if (options.keeps_one_in_flight)
      acc.wait(0); // for the turn before
    multiply(acc, share, options, a_tile, b_tile);
    if (!options.keeps_one_in_flight)
      acc.wait(0);
    if (options.is_a_in_registers)
      fence_async_shared(); // threads have read what TMA will overwrite
    sync_threads();
  };
  turn(constant(i32, 0));
  for_range(1, ceil_div(shape.k, tile_k), turn);
  acc.store(d, {row, column}, {.column_multiple = 8});
  return kb.module();
}

} // namespace lessons

// The launcher runs the kernel in each way, all other knobs as they are in
// WgmmaOptions: a tile of 128x256x64 by two warpgroups.
int main() try {
  const std::pair<const char *, lessons::WgmmaOptions> ways[] = {
      {"Nothing in flight", {.keeps_one_in_flight = false}},
      {"One wgmma in flight", {}},
      {"A from registers", {.is_a_in_registers = true}},
      {"Instructions of 64 columns", {.instruction_n = 64}},
      {"One warpgroup, 64x256x64", {.tile_m = 64, .warpgroups = 1}},
      {"B stored [n, k]", {.is_b_transposed = true}},
      {"Started from C", {.starts_from_c = true}},
  };
  auto device = lessons::open_device();
  lessons::GemmShape shape = {8192, 8192, 16384};
  if (lessons::is_simulator(*device))
    shape = {128, 256, 192};
  for (const auto &[what, options] : ways) {
    std::printf("%s:\n", what);
    Kernel kernel = compile(lessons::gemm_wgmma(shape, options));
    if (int status = lessons::launch_gemm(
            *device, kernel, shape,
            {options.is_b_transposed, options.starts_from_c}))
      return status;
  }
  return 0;
} catch (const Error &error) {
  std::fprintf(stderr, "%s\n", error.what());
  return static_cast<int>(error.exit_status());
}

// The timeline with one wgmma in flight, as the simulator prints it:
//
// +--------+----------+---------+---------+----------+----------+
// |   time | producer | slot 0  | slot 1  | wgroup 0 | wgroup 1 |
// +--------+----------+---------+---------+----------+----------+
// |   1576 |          | full    |         |          |          |
// |   1591 |          | in use  |         | mma-0    | mma-0    |
// |   1628 | tma-1    | in use  | loading | mma-0    | mma-0    |
// |   2103 | tma-1    |         | loading | wait-1   | wait-1   |
// |    ... |
// |   3215 | tma-0    | loading | in use  | mma-1    | mma-1    |
// |    ... |
// +--------+----------+---------+---------+----------+----------+
//
// To take away:
//
// - One instruction reads its A once for all its columns: the wider it is, the
//   less shared memory has to deliver.
// - Two warpgroups share a tile, and each thread holds half the accumulator.
// - A load and a wgmma overlap only if the loop waits for what it did before.
//
// On an H200 at that shape, TFLOP/s: A from registers 447, instructions of 64
// columns 349, one warpgroup 511, B stored [n, k] 460, started from C 464.
