// Step 4: TMA. Adds copies that no thread waits for: tiles come by TMA, and D
// goes out by it.
//
//     one thread   | expect, load A and B | wait | mma | wait | ... next k
//     128 threads  | meet | rows -> f16 -> shared memory | one: store by TMA
#include "ladder.h"

using namespace kiln;

namespace ladder {

// One thread of the CTA does the whole loop: it announces the bytes, issues
// both copies, waits for them, issues the products and waits for those. TMA
// writes through the same proxy as the tensor core reads through: no fence is
// needed between them, the barrier is enough.
//
// The others wait at sync_threads for the end of the loop. That thread has seen
// the products finish, and meeting passes that on.
//
// On the way out a row of sums goes through registers to shared memory, 64
// columns at a time, in the swizzled form that TMA stores from. Epilogue has
// the buffers and the waits: while TMA reads one, the next is written.
Module tma(const Shape &shape) {
  KernelBuilder kb("hgemm_v4", {.warpgroups = 1, .target = "sm_100a"});
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
  SharedTile a_tile = kb.shared(a.tile(), {.name = "a"}),
             b_tile = kb.shared(b.tile(), {.name = "b"});
  Mbarrier loaded = kb.mbarriers(1, "loaded")[0],
           done = kb.mbarriers(1, "done")[0];
  one_thread([&] {
    loaded.init(1);
    done.init(1);
    fence_mbarrier_init();
  });
  TensorMemory memory(kb, 512);
  TensorTile acc = memory.tile(f32, kTileM, kTileN);
  Epilogue out(kb, d, {.load_columns = kLoadN});

  Value row = block_id(Axis::x) * kTileM, column = block_id(Axis::y) * kTileN;
  one_thread([&] {
    for_range(0, shape.k / kTileK, [&](Value i) {
      Value parity = i & 1;
      loaded.arrive_expect_tx(a.tile_bytes() + b.tile_bytes());
      tma_load(a_tile, a, {row, i * kTileK}, loaded);
      tma_load(b_tile, b, {column, i * kTileK}, loaded);
      loaded.wait(parity);
      acc.mma(a_tile, b_tile.transpose(), {.add = i != 0});
      done.arrive_products();
      done.wait(parity);
    });
  });
  sync_threads();
  tensor_fence_after();
  out.store(acc, {row, column});
  out.finish();
  return kb.module();
}

} // namespace ladder

int main() {
  ladder::Shape shape{256, 256, 128};
  return ladder::launch(ladder::tma(shape), shape);
}
