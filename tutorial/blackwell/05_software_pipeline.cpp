// Step 5: a software pipeline. Adds a second slot of shared memory, so that the
// next tiles are on their way while these are multiplied.
//
//     slot 0  | load 0      | mma 0 | load 2      | mma 2 | ...
//     slot 1  | load 1              | mma 1 | load 3      | ...
#include "ladder.h"

#include <algorithm>

using namespace kiln;

namespace ladder {

static constexpr int kSlots = 2;

namespace {
/// The tensors, and the slots their tiles go to.
struct Ring {
  TmaTensor a, b;
  SharedTileArray a_slots, b_slots;
  MbarrierArray loaded;
  Value row, column;

  /// Load the k-th tiles into a slot.
  void load(const Value &slot, const Value &k) const {
    loaded[slot].arrive_expect_tx(a.tile_bytes() + b.tile_bytes());
    tma_load(a_slots[slot], a, {row, k * kTileK}, loaded[slot]);
    tma_load(b_slots[slot], b, {column, k * kTileK}, loaded[slot]);
  }
};
} // namespace

// As many loads as there are slots are issued before the loop; fewer where K
// has fewer tiles. In each turn the thread waits for the oldest load,
// multiplies, and when the tensor core has read the slot, fills it for the turn
// after next. Each slot has a barrier of its own, whose parity turns when the
// ring begins again: PipelineState counts both.
Module software_pipeline(const Shape &shape) {
  KernelBuilder kb("hgemm_v5", {.warpgroups = 1, .target = "sm_100a"});
  TmaTensor a =
      kb.tensor_map("a", f16, {shape.m, shape.k},
                    {.tile = {kTileM, kTileK}, .swizzle = Swizzle::b128});
  TmaTensor b =
      kb.tensor_map("b", f16, {shape.n, shape.k},
                    {.tile = {kTileN, kTileK}, .swizzle = Swizzle::b128});
  TmaTensor d =
      kb.tensor_map("d", f16, {shape.m, shape.n},
                    {.tile = {kTileM, kEpilogueN}, .swizzle = Swizzle::b128});
  kb.grid(shape.m / kTileM, shape.n / kTileN);
  Ring ring{a,
            b,
            kb.shared_array(a.tile(), kSlots, {.name = "a"}),
            kb.shared_array(b.tile(), kSlots, {.name = "b"}),
            kb.mbarriers(kSlots, "loaded"),
            block_id(Axis::x) * kTileM,
            block_id(Axis::y) * kTileN};
  Mbarrier done = kb.mbarriers(1, "done")[0];
  one_thread([&] {
    for (int i = 0; i < kSlots; ++i)
      ring.loaded[i].init(1);
    done.init(1);
    fence_mbarrier_init();
  });
  TensorMemory memory(kb, 512);
  TensorTile acc = memory.tile(f32, kTileM, kTileN);
  Epilogue out(kb, d, {.load_columns = kLoadN});

  int k_tiles = shape.k / kTileK;
  one_thread([&] {
    for (int i = 0; i < std::min(kSlots, k_tiles); ++i)
      ring.load(constant(i32, i), constant(i32, i));
    PipelineState state(kSlots, 0);
    for_range(0, k_tiles, [&](Value i) {
      Value slot = state.slot();
      ring.loaded[slot].wait(state.parity());
      acc.mma(ring.a_slots[slot], ring.b_slots[slot].transpose(),
              {.add = i != 0});
      done.arrive_products();
      done.wait(i & 1);
      if_(i + kSlots < k_tiles, [&] { ring.load(slot, i + kSlots); });
      state.advance();
    });
  });
  sync_threads();
  tensor_fence_after();
  out.store(acc, {ring.row, ring.column});
  out.finish();
  return kb.module();
}

} // namespace ladder

int main() {
  ladder::Shape shape{256, 128, 320};
  return ladder::launch(ladder::software_pipeline(shape), shape);
}
