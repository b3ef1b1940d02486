// Lesson 6: the persistent ping-pong product. Adds a second consumer and more
// than one tile per CTA, so that one consumer multiplies while the other one
// stores.
//
// In lesson 5 the tensor core rests during each epilogue, and during each start
// of a CTA. Here as many CTAs are launched as the GPU holds at once, and each
// takes tiles of D until none is left. Its two consumers take them in turns:
//
//     producer    | load tile 0 | load tile 1 | load tile 2 | load tile 3 ...
//     consumer 0  |   | mma 0     | store 0     | mma 2     | store 2 ...
//     consumer 1  |               | mma 1     | store 1     | mma 3   ...
//
// The producer does not care who consumes: k tile after k tile goes through one
// ring of slots. So there must be an order between the consumers, or both would
// wait for the same slots; and only one at a time can use the tensor core in
// full anyway. Each consumer has an mbarrier that says that it is its turn:
//
//     consumer c  | wait turn[c] | multiply its tile | arrive at turn[1 - c]
//                 | store it, and begin again
//
// The protocol of slots is that of lesson 5. From here on its words are Kiln's
// collectives: Pipeline has the barriers, slots and parities, TileScheduler the
// loop over tiles.
#include "lessons.h"

#include <kiln/language/collective/tile_scheduler.h>

using namespace kiln;

namespace lessons {

static constexpr int kTileM = 128, kTileN = 128, kTileK = 64;

namespace {
/// What the roles share.
struct PingPong {
  TmaTensor a, b;
  Tensor d;
  Pipeline &pipeline;
  TileScheduler &scheduler;
  MbarrierArray turn; ///< one for each consumer
  int k_tiles;

  void produce() const;
  void consume(const Value &consumer) const;
};
} // namespace

// The producer. `produce` waits until the next slot is empty, announces the
// bytes, and runs its body, which must load each tensor of the ring once. The
// loop over the tiles needs no more than that: the ring goes on where it was,
// and the loads for the next tile begin while this one is still multiplied.
void PingPong::produce() const {
  one_thread([&] {
    scheduler.for_each([&](const OutputTile &tile) {
      for_range(0, k_tiles, [&](Value i) {
        pipeline.produce([&](const Slot &slot) {
          slot.load(a, {tile.m * kTileM, i * kTileK});
          slot.load(b, {i * kTileK, tile.n * kTileN});
        });
      });
    });
  });
}

// A consumer, number 0 or 1. `consume` waits for the next slot to fill and runs
// its body, which issues the mma; then it waits for the mma before, and
// releases that one's slot. `drain` does so for the last one.
//
// Every other tile is the other consumer's, and so are its slots: skip counts
// them off, so that slot and parity are right again. Consumer 1 begins by
// skipping the first tile.
//
// The turn passes when the last mma has been issued, not when it is finished:
// the tensor core takes the other consumer's work as soon as it has done this
// one's. Consumer 0 must begin without being told. As the producer of lesson 5
// does, it first waits for parity 1, that of the phase before the first.
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

// The kernel. The order in which tiles are taken decides how often A and B come
// from memory and not from the L2 cache: TileScheduler goes down eight rows of
// tiles, then to the next column. Its grid is the number of SMs.
//
// The epilogue is lesson 3's, from registers to global memory: the slots belong
// to the producer, which is busy with the next tile. (Epilogue in
// kiln/language/collective/epilogue.h stores by TMA through buffers of its own.)
//
// 40 + 232 + 232 registers are 3 * 168, and 168 * 384 threads all an SM has.
Module gemm_pingpong(const GemmShape &shape, int stages, int ctas) {
  KernelBuilder kb("gemm_pingpong", {.warpgroups = 3});
  TmaTensor a =
      kb.tensor_map("a", f16, {shape.m, shape.k},
                    {.tile = {kTileM, kTileK}, .swizzle = Swizzle::b128});
  TmaTensor b =
      kb.tensor_map("b", f16, {shape.k, shape.n},
                    {.tile = {kTileK, kTileN}, .swizzle = Swizzle::b128});
  Tensor d = kb.tensor("d", f32, {shape.m, shape.n});
  TileScheduler scheduler(kb, ceil_div(shape.m, kTileM),
                          ceil_div(shape.n, kTileN), 1,
                          {.is_persistent = true, .ctas = ctas});
  MbarrierArray turn = kb.mbarriers(2, "turn");
  one_thread([&] {
    turn[0].init(1);
    turn[1].init(1);
  });
  Pipeline pipeline(kb, stages, {a, b}); // all threads meet there
  PingPong roles{
      a, b, d, pipeline, scheduler, turn, (shape.k + kTileK - 1) / kTileK};

  warpgroup(2, {.registers = 40}, [&] { roles.produce(); });
  warpgroups(0, 2, {.registers = 232},
             [&](Value consumer) { roles.consume(consumer); });
  return kb.module();
}

} // namespace lessons

int main() try {
  auto device = lessons::open_device();
  lessons::GemmShape shape = {4096, 4096, 4096};
  int stages = 4, ctas = 0;
  if (lessons::is_simulator(*device))
    shape = {256, 256, 128}, stages = 3, ctas = 1;
  Kernel kernel = compile(lessons::gemm_pingpong(shape, stages, ctas));
  lessons::describe(kernel);
  return lessons::launch_gemm(*device, kernel, shape);
} catch (const Error &error) {
  std::fprintf(stderr, "%s\n", error.what());
  return static_cast<int>(error.exit_status());
}

// The timeline of one CTA with tiles of two k tiles, as the simulator prints
// it:
//
// +--------+----------+---------+---------+---------+----------+----------+
// |   time | producer | slot 0  | slot 1  | slot 2  | wgroup 0 | wgroup 1 |
// +--------+----------+---------+---------+---------+----------+----------+
// |     97 | tma-0    | loading |         |         |          | wait     |
// |    109 | tma-0    | loading |         |         | wait-0   | wait     |
// |   1121 | tma-1    | full    | loading |         |          | wait     |
// |   1137 | tma-1    | in use  | loading |         | mma-0    | wait     |
// |   1649 | tma-1    |         | loading |         | wait-1   | wait     |
// |   2145 | tma-2    |         | full    | loading |          | wait     |
// |   2161 | tma-2    |         | in use  | loading | mma-1    | wait     |
// |   2234 | tma-2    |         | in use  | loading | mma-1    |          |
// |   2247 | tma-2    |         | in use  | loading | mma-1    | wait-2   |
// |   2673 | tma-2    |         |         | loading |          | wait-2   |
// |   2714 | tma-2    |         |         | loading | store    | wait-2   |
// |   3169 | tma-0    | loading |         | full    | store    |          |
// |   3185 | tma-0    | loading |         | in use  | store    | mma-2    |
// |   3263 | tma-0    | loading |         | in use  |          | mma-2    |
// |   3270 | tma-0    | loading |         | in use  | wait     | mma-2    |
// |   3697 | tma-0    | loading |         |         | wait     | wait-0   |
// |   4193 | tma-1    | full    | loading |         | wait     |          |
// |   4209 | tma-1    | in use  | loading |         | wait     | mma-0    |
// |   4282 | tma-1    | in use  | loading |         |          | mma-0    |
// |   4295 | tma-1    | in use  | loading |         | wait-1   | mma-0    |
// |   4721 | tma-1    |         | loading |         | wait-1   |          |
// |   4762 | tma-1    |         | loading |         | wait-1   | store    |
// |   5217 | tma-2    |         | full    | loading |          | store    |
// |   5233 | tma-2    |         | in use  | loading | mma-1    | store    |
// |   5311 | tma-2    |         | in use  | loading | mma-1    |          |
// |    ... |
// +--------+----------+---------+---------+---------+----------+----------+
//
// At 3185 consumer 0 stores its tile while consumer 1 multiplies the next one;
// at 5233 it is the other way round.
//
// To take away:
//
// - Persistent: the ring never runs empty between two tiles.
// - Ping-pong: an epilogue costs nothing as long as it takes no longer than
//   the other consumer's main loop.
// - The turn is one more pair of barriers, no different from full and empty.
//
// On an H200: 4096x4096x4096 in 203.0 us, 677 TFLOP/s (mean of 50 back to
// back).
