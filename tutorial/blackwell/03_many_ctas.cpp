// Step 3: many CTAs. Adds a grid with a CTA for each 128x128 tile of D.
#include "ladder.h"

using namespace kiln;

namespace ladder {

// The kernel of step 2 on a part of each matrix: `slice` takes 128 rows of A
// and of B, counted from 0 again, and D is stored at the tile's place. CTAs
// share nothing, so nothing else changes; each has tensor memory of its own.
Module many_ctas(const Shape &shape) {
  KernelBuilder kb("hgemm_v3", {.warpgroups = 1, .target = "sm_100a"});
  Tensor a = kb.tensor("a", f16, {shape.m, shape.k});
  Tensor b = kb.tensor("b", f16, {shape.n, shape.k});
  Tensor d = kb.tensor("d", f16, {shape.m, shape.n});
  kb.grid(shape.m / kTileM, shape.n / kTileN);
  SharedTile a_tile = kb.shared(TileLayout::of(f16, kTileM, kTileK));
  SharedTile b_tile = kb.shared(TileLayout::of(f16, kTileN, kTileK));
  Mbarrier done = kb.mbarriers(1, "done")[0];
  one_thread([&] {
    done.init(1);
    fence_mbarrier_init();
  });
  TensorMemory memory(kb, 512);
  TensorTile acc = memory.tile(f32, kTileM, kTileN);

  Value row = block_id(Axis::x) * kTileM, column = block_id(Axis::y) * kTileN;
  Tensor a_rows = a.slice(0, row, kTileM), b_rows = b.slice(0, column, kTileN);
  Var parity(i32, 0);
  for_range(0, shape.k / kTileK, [&](Value i) {
    copy(CopyScope::cta, a_tile, a_rows.slice(1, i * kTileK, kTileK, kTileK));
    copy(CopyScope::cta, b_tile, b_rows.slice(1, i * kTileK, kTileK, kTileK));
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
  cast(acc.load(), f16)
      .store(d, {row, column}, {.is_inside = true, .column_multiple = kTileN});
  return kb.module();
}

} // namespace ladder

int main() {
  ladder::Shape shape{256, 256, 128};
  return ladder::launch(ladder::many_ctas(shape), shape);
}
