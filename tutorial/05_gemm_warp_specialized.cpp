// Lesson 5: the warp-specialized product. Adds roles: one warpgroup only loads,
// another one only multiplies, and mbarriers in both directions between them.
//
// In lesson 4 the thread that loads is one of those that multiply, and a load
// waits until that thread comes round to it. Here the producer runs ahead as
// far as there are slots, whatever the consumer does:
//
//     producer   | wait empty s -> expect bytes, load into s -> next s
//     consumer   | wait full s  -> mma on s, release the one before -> next s
//
// A slot now has two barriers. `full` completes when TMA has written its bytes,
// as before. `empty` completes when the consumer arrives at it, and is what the
// producer waits for before it loads into the slot again:
//
//     k tile           0   1   2   3   4   5   6   7   8   ...
//     slot             0   1   2   3   0   1   2   3   0
//     full, parity     0   0   0   0   1   1   1   1   0
//     empty, parity    1   1   1   1   0   0   0   0   1
//
// In the first round nobody has released anything, and the producer must not
// wait. It waits for parity 1: of a fresh barrier the phase before the first,
// which has parity 1, counts as completed.
#include "lessons.h"

using namespace kiln;

namespace lessons {

static constexpr int kTileM = 128, kTileN = 128, kTileK = 64;

namespace {
/// The slots, and what both roles know of them.
struct Ring {
  TmaTensor a, b;
  SharedTileArray a_slots, b_slots; ///< `stages` tiles each
  MbarrierArray full, empty;
  int stages, k_tiles;
  Value row, column; ///< of D, where this CTA's tile begins
};
} // namespace

// The producer. One thread of the warpgroup does everything: to ask for a tile
// takes a handful of instructions.
static void produce(const Ring &ring) {
  one_thread([&] {
    for_range(0, ring.k_tiles, [&](Value i) {
      Value slot = i % ring.stages, round = i / ring.stages;
      ring.empty[slot].wait((round & 1) ^ 1);
      ring.full[slot].arrive_expect_tx(ring.a.tile_bytes() +
                                       ring.b.tile_bytes());
      tma_load(ring.a_slots[slot], ring.a, {ring.row, i * kTileK},
               ring.full[slot]);
      tma_load(ring.b_slots[slot], ring.b, {i * kTileK, ring.column},
               ring.full[slot]);
    });
  });
}

// The consumer. As in lesson 4 one multiplication stays in flight, so what can
// be released after issuing number i is the slot of number i - 1. One thread
// arrives for all: a wgmma is one operation of four warps, and finished for all
// of them at once. The last slots are not released, for nobody wants them.
static void consume(const Ring &ring, Accumulator &acc) {
  for_range(0, ring.k_tiles, [&](Value i) {
    Value slot = i % ring.stages, round = i / ring.stages;
    ring.full[slot].wait(round & 1);
    acc.mma(ring.a_slots[slot], ring.b_slots[slot]);
    acc.wait(1);
    if_(i > 0, [&] {
      one_thread([&] { ring.empty[(i - 1) % ring.stages].arrive(); });
    });
  });
  acc.wait(0);
}

// The epilogue of lesson 4, by the consumer alone: its 128 threads meet at a
// barrier of their own, since the producer has left.
static void epilogue(const Ring &ring, const Accumulator &acc,
                     const SharedTile &out, const Tensor &d) {
  acc.tile().store(out);
  sync_warpgroup();
  copy(CopyScope::warpgroup,
       d.slice(0, ring.row, kTileM).slice(1, ring.column, kTileN, kTileN), out);
}

// The kernel. An accumulator of 128x128 takes 128 registers of each thread, and
// a thread that loads next to none. A kernel is launched with as many for each,
// and setmaxnreg moves them: the producer gives back all but 40, the consumer
// takes 232. Kiln works out how many the launch needs, 136 here, and refuses a
// plan in which somebody would wait for registers that nobody gives back.
//
// The role is branched on by a number that is the same in all lanes of a warp
// and that the assembler can see to be; else it would serialize every wgmma.
Module gemm_warp_specialized(const GemmShape &shape, int stages) {
  KernelBuilder kb("gemm_warp_specialized", {.warpgroups = 2});
  TmaTensor a =
      kb.tensor_map("a", f16, {shape.m, shape.k},
                    {.tile = {kTileM, kTileK}, .swizzle = Swizzle::b128});
  TmaTensor b =
      kb.tensor_map("b", f16, {shape.k, shape.n},
                    {.tile = {kTileK, kTileN}, .swizzle = Swizzle::b128});
  Tensor d = kb.tensor("d", f32, {shape.m, shape.n});
  kb.grid(ceil_div(shape.m, kTileM), ceil_div(shape.n, kTileN));

  Ring ring{a,
            b,
            kb.shared_array(a.tile(), stages, {.name = "a"}),
            kb.shared_array(b.tile(), stages, {.name = "b"}),
            kb.mbarriers(stages, "full"),
            kb.mbarriers(stages, "empty"),
            stages,
            (shape.k + kTileK - 1) / kTileK,
            block_id(Axis::x) * kTileM,
            block_id(Axis::y) * kTileN};
  SharedTile out =
      kb.shared(TileLayout::of(f32, kTileM, kTileN), {.over = ring.a_slots[0]});
  one_thread([&] {
    for (int i = 0; i < stages; ++i) {
      ring.full[i].init(1);
      ring.empty[i].init(1);
    }
    fence_mbarrier_init();
  });
  sync_threads();

  warpgroup(1, {.registers = 40}, [&] { produce(ring); });
  warpgroup(0, {.registers = 232}, [&] {
    Accumulator acc(f32, kTileM, kTileN);
    consume(ring, acc);
    epilogue(ring, acc, out, d);
  });
  return kb.module();
}

} // namespace lessons

int main() try {
  auto device = lessons::open_device();
  lessons::GemmShape shape = {4096, 4096, 4096};
  int stages = 4;
  if (lessons::is_simulator(*device))
    shape = {128, 128, 384}, stages = 2;
  Kernel kernel = compile(lessons::gemm_warp_specialized(shape, stages));
  lessons::describe(kernel);
  return lessons::launch_gemm(*device, kernel, shape);
} catch (const Error &error) {
  std::fprintf(stderr, "%s\n", error.what());
  return static_cast<int>(error.exit_status());
}

// The timeline of one CTA with two slots, as the simulator prints it:
//
// +--------+----------+---------+---------+----------+
// |   time | producer | slot 0  | slot 1  | wgroup 0 |
// +--------+----------+---------+---------+----------+
// |     48 |          |         |         | wait-0   |
// |     58 | tma-0    | loading |         | wait-0   |
// |   1082 | tma-1    | full    | loading |          |
// |   1097 | tma-1    | in use  | loading | mma-0    |
// |   1609 | tma-1    |         | loading | wait-1   |
// |   2106 | wait-0   |         | full    |          |
// |   2121 | wait-0   |         | in use  | mma-1    |
// |   2170 | tma-0    | loading | in use  | mma-1    |
// |   2633 | tma-0    | loading |         | wait-0   |
// |   3194 | wait-1   | full    |         |          |
// |   3209 | wait-1   | in use  |         | mma-0    |
// |   3258 | tma-1    | in use  | loading | mma-0    |
// |   3721 | tma-1    |         | loading | wait-1   |
// |    ... |
// |   6458 |          |         | full    |          |
// |   6473 |          |         | in use  | mma-1    |
// |   6985 |          |         |         |          |
// |   7386 |          |         |         | store    |
// |   7730 |          |         |         |          |
// +--------+----------+---------+---------+----------+
//
// At 2106 slot 0 has been multiplied and the producer still waits for it: it is
// released when the next multiplication has been issued, and loaded meanwhile.
//
// To take away:
//
// - Two barriers per slot: full for the consumer, empty for the producer.
// - The producer's parity is the consumer's, turned; so it begins without
//   waiting.
// - setmaxnreg gives registers to who computes. The sum must be what the CTA
//   was launched with.
// - While the epilogue runs the tensor core rests. The next lesson has another
//   consumer for that time.
//
// On an H200: 4096x4096x4096 in 231.8 us, 593 TFLOP/s (mean of 50 back to
// back).
