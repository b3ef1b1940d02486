// Step 2: a loop over K. Adds sums that stay in tensor memory.
//
//     for each 64 of K | copy | fence, meet | mma (adds, but for the first)
//                      | wait until the tensor core has read the tiles
//     at the end       | load, round, store
#include "ladder.h"

using namespace kiln;

namespace ladder {

// Whether a product adds to what is there is a predicate of the instruction:
// `add` is false in the first turn, so that nothing has to be cleared.
//
// The two tiles are used again in each turn, and the tensor core may still read
// them: the wait at the end of a turn is for the reuse as much as for the last
// result. A barrier's phases alternate, so the parity to wait for turns with
// every turn of the loop.
Module k_loop(int k) {
  KernelBuilder kb("hgemm_v2", {.warpgroups = 1, .target = "sm_100a"});
  Tensor a = kb.tensor("a", f16, {kTileM, k});
  Tensor b = kb.tensor("b", f16, {kTileN, k});
  Tensor d = kb.tensor("d", f16, {kTileM, kTileN});
  kb.grid(1);
  SharedTile a_tile = kb.shared(TileLayout::of(f16, kTileM, kTileK));
  SharedTile b_tile = kb.shared(TileLayout::of(f16, kTileN, kTileK));
  Mbarrier done = kb.mbarriers(1, "done")[0];
  one_thread([&] {
    done.init(1);
    fence_mbarrier_init();
  });
  TensorMemory memory(kb, 512);
  TensorTile acc = memory.tile(f32, kTileM, kTileN);

  Var parity(i32, 0);
  for_range(0, k / kTileK, [&](Value i) {
    copy(CopyScope::cta, a_tile, a.slice(1, i * kTileK, kTileK, kTileK));
    copy(CopyScope::cta, b_tile, b.slice(1, i * kTileK, kTileK, kTileK));
    fence_async_shared();
    sync_threads();
    one_thread([&] {
      acc.mma(a_tile, b_tile.transpose(), {.add = i != 0});
      done.arrive_products();
    });
    done.wait(parity);
    parity = parity ^ 1;
  });
  tensor_fence_after();
  cast(acc.load(), f16).store(d, {0, 0}, {.is_inside = true});
  return kb.module();
}

} // namespace ladder

int main() { return ladder::launch(ladder::k_loop(256), {128, 128, 256}); }

// To take away: sums live in tensor memory from the first k to the last, and a
// loop of products needs no registers at all.
