// Lesson 7: clusters and multicast. Adds a second CTA that works beside this
// one, and TMA loads that write to the shared memory of both.
//
// Two CTAs whose tiles of D lie one below the other need different tiles of A
// and the same tile of B. In lesson 6 both load it. As a cluster of two they
// are on the GPU at the same time and reach each other's shared memory, so each
// of them loads one half of B and sends it to both:
//
//             CTA 0              CTA 1
//     A       rows   0 .. 127    rows 128 .. 255      each its own
//     B       k  0 .. 31 -----------> to both
//             to both <-------------- k 32 .. 63
//
// So a CTA asks for 24 KiB per k tile, not for 32, and L2 is read that much
// less. What it costs is that the two must keep step. A CTA writes into the
// other one's slots; before it does, that slot must be empty there too:
//
//     full    as before: 32 KiB have arrived, whoever sent them
//     empty   completes when the slot has been released in both CTAs
//
// All else is lesson 6.
#include "lessons.h"

#include <kiln/language/collective/tile_scheduler.h>

using namespace kiln;

namespace lessons {

static constexpr int kTileM = 128, kTileN = 128, kTileK = 64;
static constexpr int kCluster = 2; ///< CTAs, along m

namespace {
/// What the roles share.
struct PingPong {
  TmaTensor a, b;
  Tensor d;
  Multicast b_halves;
  Pipeline &pipeline;
  TileScheduler &scheduler;
  MbarrierArray turn; ///< one for each consumer
  int k_tiles;

  void produce() const;
  void consume(const Value &consumer) const;
};
} // namespace

// The producer. The origin is that of the whole tile of B; the pipeline adds
// the rows at which this CTA's half begins, in the matrix and in the slot, and
// issues cp.async.bulk.tensor with .multicast::cluster and the mask of those
// who get it. The bytes are signalled to each one's own barrier, at the same
// place in its shared memory.
void PingPong::produce() const {
  one_thread([&] {
    scheduler.for_each([&](const OutputTile &tile) {
      for_range(0, k_tiles, [&](Value i) {
        pipeline.produce([&](const Slot &slot) {
          slot.load(a, {tile.m * kTileM, i * kTileK});
          slot.load(b, {i * kTileK, tile.n * kTileN}, b_halves);
        });
      });
    });
  });
}

// A consumer, as in lesson 6. The turns are between the two of one CTA. When it
// is done with a slot the pipeline arrives at the `empty` barriers of both
// CTAs, each with one instruction: wgmma has finished reading by then, so
// nothing is left that a fence would have to order.
void PingPong::consume(const Value &consumer) const {
  Accumulator acc(f32, kTileM, kTileN);
  Var parity(i32, 1 - consumer);
  pipeline.skip(consumer * k_tiles);
  scheduler.for_each(consumer, 2, [&](const OutputTile &tile) {
    turn[consumer].wait(parity);
    acc.reset();
    for_range(0, k_tiles, [&](Value) {
      pipeline.consume(acc,
                       [&](const Slot &slot) { acc.mma(slot[a], slot[b]); });
    });
    one_thread([&] { turn[1 - consumer].arrive(); });
    pipeline.drain(acc);
    pipeline.skip(k_tiles);
    parity = parity ^ 1;
    acc.store(d, {tile.m * kTileM, tile.n * kTileN},
              {.column_multiple = kTileN});
  });
}

// The kernel. The scheduler now hands out blocks of 2x1 tiles, one tile to each
// CTA of a cluster. Where D has an odd number of tile rows one CTA of the last
// cluster has a tile outside of D. It works all the same, for the other one
// needs its half of B: its A reads as zeros, and `store` leaves out what it
// computed.
//
// The map of B has a tile of 32 rows: what one CTA loads. `parts` says that a
// slot holds one tile of A and two of B, one below the other, and `peers` who
// else writes to this CTA's slots. `finish` keeps a CTA from leaving while the
// other may still arrive at its barriers.
Module gemm_multicast(const GemmShape &shape, int stages, int ctas) {
  KernelBuilder kb("gemm_multicast",
                   {.warpgroups = 3, .cluster = {.x = kCluster}});
  TmaTensor a =
      kb.tensor_map("a", f16, {shape.m, shape.k},
                    {.tile = {kTileM, kTileK}, .swizzle = Swizzle::b128});
  TmaTensor b = kb.tensor_map(
      "b", f16, {shape.k, shape.n},
      {.tile = {kTileK / kCluster, kTileN}, .swizzle = Swizzle::b128});
  Tensor d = kb.tensor("d", f32, {shape.m, shape.n});
  TileScheduler scheduler(
      kb, ceil_div(shape.m, kTileM), ceil_div(shape.n, kTileN), 1,
      {.is_persistent = true, .ctas = ctas, .cluster_m = kCluster});
  MbarrierArray turn = kb.mbarriers(2, "turn");
  one_thread([&] {
    turn[0].init(1);
    turn[1].init(1);
  });
  Value rank = cluster_rank();
  Pipeline pipeline(kb, stages, {a, b},
                    {.parts = {1, kCluster}, .peers = {rank ^ 1}});
  Multicast b_halves{kCluster, rank, constant(i32, (1 << kCluster) - 1)};
  PingPong roles{a,        b,         d,    b_halves,
                 pipeline, scheduler, turn, (shape.k + kTileK - 1) / kTileK};

  warpgroup(2, {.registers = 40}, [&] { roles.produce(); });
  warpgroups(0, 2, {.registers = 232},
             [&](Value consumer) { roles.consume(consumer); });
  pipeline.finish();
  return kb.module();
}

} // namespace lessons

int main() try {
  auto device = lessons::open_device();
  lessons::GemmShape shape = {4096, 4096, 4096};
  int stages = 4, ctas = 0;
  if (lessons::is_simulator(*device))
    shape = {256, 512, 128}, stages = 3, ctas = 2;
  Kernel kernel = compile(lessons::gemm_multicast(shape, stages, ctas));
  lessons::describe(kernel);
  return lessons::launch_gemm(*device, kernel, shape);
} catch (const Error &error) {
  std::fprintf(stderr, "%s\n", error.what());
  return static_cast<int>(error.exit_status());
}

// The beginning of the first CTA's timeline, as the simulator prints it:
//
// +--------+----------+---------+---------+---------+----------+----------+
// |   time | producer | slot 0  | slot 1  | slot 2  | wgroup 0 | wgroup 1 |
// +--------+----------+---------+---------+---------+----------+----------+
// |    121 | tma-0    | loading |         |         | wait-0   | wait     |
// |    860 | tma-1    | full    | loading |         |          | wait     |
// |    876 | tma-1    | in use  | loading |         | mma-0    | wait     |
// |   1388 | tma-1    |         | loading |         | wait-1   | wait     |
// |   1628 | tma-2    |         | full    | loading |          | wait     |
// |   1644 | tma-2    |         | in use  | loading | mma-1    | wait     |
// |   1717 | tma-2    |         | in use  | loading | mma-1    |          |
// |   1730 | tma-2    |         | in use  | loading | mma-1    | wait-2   |
// |   2156 | tma-2    |         |         | loading |          | wait-2   |
// |   2198 | tma-2    |         |         | loading | store    | wait-2   |
// |   2396 | tma-0    | loading |         | full    | store    |          |
// |   2412 | tma-0    | loading |         | in use  | store    | mma-2    |
// |   2747 | tma-0    | loading |         | in use  |          | mma-2    |
// |   2754 | tma-0    | loading |         | in use  | wait     | mma-2    |
// |   2924 | tma-0    | loading |         |         | wait     | wait-0   |
// |   3164 | tma-1    | full    | loading |         | wait     |          |
// |   3180 | tma-1    | in use  | loading |         | wait     | mma-0    |
// |    ... |
// +--------+----------+---------+---------+---------+----------+----------+
//
// A k tile takes the 768 units of 24 KiB to load, where in lesson 6 it took
// 1024.
//
// To take away:
//
// - A cluster shares loads: each CTA a part, sent to all who need it.
// - Bytes are counted where they arrive; emptiness is told to all who write.
// - Nobody leaves a cluster while others may still reach for its memory.
//
// On an H200: 4096x4096x4096 in 207.9 us, 661 TFLOP/s (mean of 50 back to
// back); lesson 6 takes 203.0. So in this order of tiles the cluster does not
// pay. kiln::gemm takes 174.1 us for the same tiles of bf16 in clusters of 2x1
// and 175.2 in single CTAs (rested, bench/results/h200/schedules.json): it
// orders tiles along M in groups of 16, so that clusters that follow each other
// share A (docs/gemm.md).
