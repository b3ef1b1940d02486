// Lesson 4: the multistage product. Adds a ring of slots in shared memory, so
// that TMA loads the tiles to come while the tensor core works on those that
// are there.
//
//     D[m, n] = A[m, k] * B[k, n]      each CTA 128x128 of D, in steps of 64 k
//
// Each slot has room for a tile of A and one of B, and an mbarrier that
// completes when both have arrived. There are three parts, with three slots:
//
//     prologue   load 0, load 1
//     main loop  wait 0, mma 0, load 2 | wait 1, mma 1, load 3 | wait 2, ...
//     epilogue   wait for the last mma, registers to shared to global memory
//
// The k tile i goes to slot i % stages. A slot that is used for the r-th time
// is in the r-th phase of its barrier, and what a wait must name is the parity
// of that phase, (i / stages) % 2:
//
//     k tile   0   1   2   3   4   5   6   7   8   ...
//     slot     0   1   2   0   1   2   0   1   2
//     parity   0   0   0   1   1   1   0   0   0
#include "lessons.h"

using namespace kiln;

namespace lessons {

static constexpr int kTileM = 128, kTileN = 128, kTileK = 64;

namespace {
/// What the three parts share.
struct Ring {
  TmaTensor a, b;
  SharedTileArray a_slots, b_slots; ///< `stages` tiles each
  MbarrierArray full;
  int stages;
  Value row, column; ///< of D, where this CTA's tile begins

  Value slot(const Value &k_tile) const { return k_tile % stages; }
  Value parity(const Value &k_tile) const { return k_tile / stages & 1; }
  SharedTile a_tile(const Value &k_tile) const { return a_slots[slot(k_tile)]; }
  SharedTile b_tile(const Value &k_tile) const { return b_slots[slot(k_tile)]; }
  void load(const Value &k_tile) const;
};
} // namespace

// Lesson 2's protocol for one slot. Beyond the edge of a matrix TMA fills in
// zeros, which add nothing, and counts their bytes: shapes need not be
// multiples of the tile.
void Ring::load(const Value &k_tile) const {
  one_thread([&] {
    Mbarrier loaded = full[slot(k_tile)];
    loaded.arrive_expect_tx(a.tile_bytes() + b.tile_bytes());
    tma_load(a_tile(k_tile), a, {row, k_tile * kTileK}, loaded);
    tma_load(b_tile(k_tile), b, {k_tile * kTileK, column}, loaded);
  });
}

// The main loop. One multiplication stays in flight: wait(1) returns when all
// but the last one have finished. So after issuing number i the loop knows that
// number i - 1 is done, and loads the tile that comes `stages` later into its
// slot. The very first multiplication overwrites the accumulator.
//
// All 128 threads wait for the bytes; that is also how they see them.
static void main_loop(const Ring &ring, Accumulator &acc, int k_tiles) {
  int ahead = ring.stages - 1;
  for_range(0, k_tiles, [&](Value i) {
    ring.full[ring.slot(i)].wait(ring.parity(i));
    acc.mma(ring.a_tile(i), ring.b_tile(i));
    acc.wait(1);
    if_(i + ahead < k_tiles, [&] { ring.load(i + ahead); });
  });
  acc.wait(0);
}

// The epilogue. A thread's elements lie in pieces of 8 bytes all over the tile.
// Through shared memory they become whole rows, which a warp writes to global
// memory in one go. The slots are not needed any more, so the tile lies over
// them. `copy` leaves out what is beyond the edge of D.
static void epilogue(const Ring &ring, const Accumulator &acc,
                     const SharedTile &out, const Tensor &d) {
  acc.tile().store(out);
  sync_threads();
  copy(CopyScope::cta,
       d.slice(0, ring.row, kTileM).slice(1, ring.column, kTileN, kTileN), out);
}

// The kernel. Three slots are 96 KiB and the threads few, so that two CTAs fit
// on one SM and one of them multiplies while the other begins or ends.
Module gemm_multistage(const GemmShape &shape, int stages) {
  KernelBuilder kb("gemm_multistage", {.warpgroups = 1, .ctas_per_sm = 2});
  TmaTensor a =
      kb.tensor_map("a", f16, {shape.m, shape.k},
                    {.tile = {kTileM, kTileK}, .swizzle = Swizzle::b128});
  TmaTensor b =
      kb.tensor_map("b", f16, {shape.k, shape.n},
                    {.tile = {kTileK, kTileN}, .swizzle = Swizzle::b128});
  Tensor d = kb.tensor("d", f32, {shape.m, shape.n});
  kb.grid(ceil_div(shape.m, kTileM), ceil_div(shape.n, kTileN));
  int k_tiles = (shape.k + kTileK - 1) / kTileK;

  Ring ring{a,
            b,
            kb.shared_array(a.tile(), stages, {.name = "a"}),
            kb.shared_array(b.tile(), stages, {.name = "b"}),
            kb.mbarriers(stages, "full"),
            stages,
            block_id(Axis::x) * kTileM,
            block_id(Axis::y) * kTileN};
  SharedTile out =
      kb.shared(TileLayout::of(f32, kTileM, kTileN), {.over = ring.a_slots[0]});
  one_thread([&] {
    for (int i = 0; i < stages; ++i)
      ring.full[i].init(1);
    fence_mbarrier_init();
  });
  sync_threads();

  for (int i = 0; i < stages - 1 && i < k_tiles; ++i)
    ring.load(constant(i32, i)); // the prologue
  Accumulator acc(f32, kTileM, kTileN);
  main_loop(ring, acc, k_tiles);
  epilogue(ring, acc, out, d);
  return kb.module();
}

} // namespace lessons

int main() try {
  auto device = lessons::open_device();
  lessons::GemmShape shape = {4096, 4096, 4096};
  if (lessons::is_simulator(*device))
    shape = {128, 128, 384};
  Kernel kernel = compile(lessons::gemm_multistage(shape));
  lessons::describe(kernel);
  return lessons::launch_gemm(*device, kernel, shape);
} catch (const Error &error) {
  std::fprintf(stderr, "%s\n", error.what());
  return static_cast<int>(error.exit_status());
}

// The timeline of one CTA and six k tiles, as the simulator prints it:
//
// +--------+----------+---------+---------+---------+----------+
// |   time | producer | slot 0  | slot 1  | slot 2  | wgroup 0 |
// +--------+----------+---------+---------+---------+----------+
// |     37 | tma-0    | loading |         |         |          |
// |     71 | tma-0    | loading |         |         | wait-0   |
// |   1061 | tma-1    | full    | loading |         |          |
// |   1076 | tma-1    | in use  | loading |         | mma-0    |
// |   1588 | tma-1    |         | loading |         | wait-1   |
// |   2085 | tma-2    |         | full    | loading |          |
// |   2100 | tma-2    |         | in use  | loading | mma-1    |
// |   2612 | tma-2    |         |         | loading | wait-2   |
// |   3109 | tma-0    | loading |         | full    |          |
// |   3124 | tma-0    | loading |         | in use  | mma-2    |
// |   3636 | tma-0    | loading |         |         | wait-0   |
// |   4133 | tma-1    | full    | loading |         |          |
// |    ... |
// |   6196 |          |         |         | in use  | mma-2    |
// |   6708 |          |         |         |         |          |
// |   7100 |          |         |         |         | store    |
// |   7429 |          |         |         |         |          |
// +--------+----------+---------+---------+---------+----------+
//
// Loading never rests, and multiplying takes place meanwhile: a k tile costs
// the 1024 units of its loads, where in lesson 3 it cost 1576.
//
// To take away:
//
// - stages - 1 tiles are on their way before the first multiplication.
// - Slot and parity follow from the number of the tile; nothing is counted.
// - A slot may be loaded again when the multiplication that read it has been
//   waited for. Here the loading thread has waited itself; from the next lesson
//   on it must be told.
//
// On an H200: 4096x4096x4096 in 206.0 us, 667 TFLOP/s (mean of 50 back to
// back).
