// Step 7: roles. Adds warps that do one thing each, and the four barriers
// between them.
//
//     warpgroup 1, warp 3    loads                 tma2mma   a slot is full
//     warpgroup 1, warp 0    multiplies            mma2tma   a slot is empty
//     warpgroup 0            stores                mma2ld    the sums are done
//                                                  ld2mma    they were loaded
//
//     load    | tiles 0, 1 | 2 | 3 | ... the next tile of D at once ...
//     mma     |      | 0 | 1 | 2 | 3 |          | next | ...
//     store   |                      | load, store | ...
#include "ladder.h"

using namespace kiln;

namespace ladder {

static constexpr int kSlots = 2;

namespace {
/// What the roles share.
struct Roles {
  TmaTensor a, b;
  TileScheduler &scheduler;
  Epilogue &out;
  SharedTileArray a_slots, b_slots;
  MbarrierArray tma2mma, mma2tma;
  Mbarrier mma2ld, ld2mma;
  TensorTile acc;
  int k_tiles;

  void load() const;
  void multiply() const;
  void store() const;
};
} // namespace

// One thread of warp 3. Slots begin empty: the first wait is for the phase
// before the first, parity 1.
void Roles::load() const {
  PipelineState at(kSlots, 1);
  scheduler.for_each([&](const OutputTile &tile) {
    for_range(0, k_tiles, [&](Value i) {
      Value slot = at.slot();
      mma2tma[slot].wait(at.parity());
      tma2mma[slot].arrive_expect_tx(a.tile_bytes() + b.tile_bytes());
      tma_load(a_slots[slot], a, {tile.m * kTileM, i * kTileK}, tma2mma[slot]);
      tma_load(b_slots[slot], b, {tile.n * kTileN, i * kTileK}, tma2mma[slot]);
      at.advance();
    });
  });
}

// One thread of warp 0. It waits for nothing but what it needs: a free
// accumulator, a full slot. That a slot has been read the tensor core tells the
// loader itself, and the last commit of a tile tells those who store.
void Roles::multiply() const {
  PipelineState at(kSlots, 0);
  Var free(i32, 1);
  scheduler.for_each([&](const OutputTile &) {
    ld2mma.wait(free);
    free = free ^ 1;
    tensor_fence_after();
    for_range(0, k_tiles, [&](Value i) {
      Value slot = at.slot();
      tma2mma[slot].wait(at.parity());
      acc.mma(a_slots[slot], b_slots[slot].transpose(), {.add = i != 0});
      mma2tma[slot].arrive_products({.cta_mask = 1});
      at.advance();
    });
    mma2ld.arrive_products({.cta_mask = 1});
  });
}

// The 128 threads of warpgroup 0. ld2mma counts all of them: each has loads of
// its own that must be over.
void Roles::store() const {
  Var done(i32, 0);
  scheduler.for_each([&](const OutputTile &tile) {
    mma2ld.wait(done);
    done = done ^ 1;
    tensor_fence_after();
    out.store(acc, {tile.m * kTileM, tile.n * kTileN});
    tensor_fence_before();
    ld2mma.arrive();
  });
  out.finish();
}

// One arrival completes a phase of the first three barriers: that of the thread
// that announces the bytes, or that of the tensor core. All barriers are made
// before the roles, by one thread, and seen by all when they meet.
Module warp_specialized(const Shape &shape, int ctas) {
  KernelBuilder kb("hgemm_v7", {.warpgroups = 2, .target = "sm_100a"});
  TmaTensor a =
      kb.tensor_map("a", f16, {shape.m, shape.k},
                    {.tile = {kTileM, kTileK}, .swizzle = Swizzle::b128});
  TmaTensor b =
      kb.tensor_map("b", f16, {shape.n, shape.k},
                    {.tile = {kTileN, kTileK}, .swizzle = Swizzle::b128});
  TmaTensor d =
      kb.tensor_map("d", f16, {shape.m, shape.n},
                    {.tile = {kTileM, kEpilogueN}, .swizzle = Swizzle::b128});
  TileScheduler scheduler(kb, shape.m / kTileM, shape.n / kTileN, 1,
                          {.is_persistent = true, .ctas = ctas});
  SharedTileArray a_slots = kb.shared_array(a.tile(), kSlots, {.name = "a"});
  SharedTileArray b_slots = kb.shared_array(b.tile(), kSlots, {.name = "b"});
  MbarrierArray tma2mma = kb.mbarriers(kSlots, "tma2mma"),
                mma2tma = kb.mbarriers(kSlots, "mma2tma");
  Mbarrier mma2ld = kb.mbarriers(1, "mma2ld")[0],
           ld2mma = kb.mbarriers(1, "ld2mma")[0];
  one_thread([&] {
    for (int i = 0; i < kSlots; ++i) {
      tma2mma[i].init(1);
      mma2tma[i].init(1);
    }
    mma2ld.init(1);
    ld2mma.init(128);
    fence_mbarrier_init();
  });
  TensorMemory memory(kb, 512);
  Epilogue out(kb, d, {.load_columns = kLoadN});
  Roles roles{a,
              b,
              scheduler,
              out,
              a_slots,
              b_slots,
              tma2mma,
              mma2tma,
              mma2ld,
              ld2mma,
              memory.tile(f32, kTileM, kTileN),
              shape.k / kTileK};
  warpgroup(1, [&] {
    one_thread_of(3, [&] { roles.load(); });
    one_thread_of(0, [&] { roles.multiply(); });
  });
  warpgroup(0, [&] { roles.store(); });
  return kb.module();
}

} // namespace ladder

int main() {
  ladder::Shape shape{384, 256, 192};
  return ladder::launch(ladder::warp_specialized(shape, 4), shape);
}
