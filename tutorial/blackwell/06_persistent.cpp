// Step 6: a persistent kernel. Adds a scheduler: as many CTAs as the device has
// multiprocessors, 148 of them, take tile after tile.
//
//     CTA 0   | tile 0 | tile 148 | tile 296 | ...
//     CTA 1   | tile 1 | tile 149 | ...
#include "ladder.h"

#include <algorithm>

using namespace kiln;

namespace ladder {

static constexpr int kSlots = 2;

namespace {
/// What the loop over tiles works with.
struct Persistent {
  TmaTensor a, b;
  SharedTileArray a_slots, b_slots;
  MbarrierArray loaded;
  Mbarrier done;
  TensorTile acc;
  int k_tiles;

  void load(const Value &slot, const OutputTile &tile, const Value &k) const {
    loaded[slot].arrive_expect_tx(a.tile_bytes() + b.tile_bytes());
    tma_load(a_slots[slot], a, {tile.m * kTileM, k * kTileK}, loaded[slot]);
    tma_load(b_slots[slot], b, {tile.n * kTileN, k * kTileK}, loaded[slot]);
  }
  void multiply(const OutputTile &tile, PipelineState &filled,
                PipelineState &used, Var &parity) const;
};
} // namespace

// The loop of step 5, for one tile. Slots and phases go on from tile to tile:
// `filled` is where the next load goes, `used` where the next product reads,
// and `parity` that of the next product.
void Persistent::multiply(const OutputTile &tile, PipelineState &filled,
                          PipelineState &used, Var &parity) const {
  auto load_next = [&](const Value &k) {
    load(filled.slot(), tile, k);
    filled.advance();
  };
  for (int i = 0; i < std::min(kSlots, k_tiles); ++i)
    load_next(constant(i32, i));
  for_range(0, k_tiles, [&](Value i) {
    Value slot = used.slot();
    loaded[slot].wait(used.parity());
    acc.mma(a_slots[slot], b_slots[slot].transpose(), {.add = i != 0});
    done.arrive_products();
    done.wait(parity);
    parity = parity ^ 1;
    used.advance();
    if_(i + kSlots < k_tiles, [&] { load_next(i + kSlots); });
  });
}

// TileScheduler orders the tiles so that those at work at one time share rows
// and columns, which then come from the L2 cache: down eight rows of tiles,
// then to the next column, and back up in the next eight (serpentine).
//
// Sums of one tile are loaded before the products of the next overwrite them:
// the threads meet once more at the end of a tile, between the two fences of
// tensor memory.
Module persistent(const Shape &shape, int ctas) {
  KernelBuilder kb("hgemm_v6", {.warpgroups = 1, .target = "sm_100a"});
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
  MbarrierArray loaded = kb.mbarriers(kSlots, "loaded");
  Mbarrier done = kb.mbarriers(1, "done")[0];
  one_thread([&] {
    for (int i = 0; i < kSlots; ++i)
      loaded[i].init(1);
    done.init(1);
    fence_mbarrier_init();
  });
  TensorMemory memory(kb, 512);
  Epilogue out(kb, d, {.load_columns = kLoadN});
  Persistent loop{a,
                  b,
                  a_slots,
                  b_slots,
                  loaded,
                  done,
                  memory.tile(f32, kTileM, kTileN),
                  shape.k / kTileK};

  PipelineState filled(kSlots, 0), used(kSlots, 0);
  Var parity(i32, 0);
  scheduler.for_each([&](const OutputTile &tile) {
    one_thread([&] { loop.multiply(tile, filled, used, parity); });
    sync_threads();
    tensor_fence_after();
    out.store(loop.acc, {tile.m * kTileM, tile.n * kTileN});
    tensor_fence_before();
    sync_threads();
    tensor_fence_after();
  });
  out.finish();
  return kb.module();
}

} // namespace ladder

int main() {
  ladder::Shape shape{384, 256, 192};
  return ladder::launch(ladder::persistent(shape, 4), shape);
}
