#include <kiln/kiln.h>
using namespace kiln;

Kernel sums(Dim tiles) {                                // y[j] = the sum of column j of x
  KernelBuilder kb("sums", {.warpgroups = 2});
  auto x = kb.tensor_map("x", f32, {tiles * 8, 128}, {.tile = {8, 128}});
  auto y = kb.tensor("y", f32, {128});
  SharedTile tile = kb.shared(x.tile(), {.name = "tile"});
  Mbarrier full = kb.mbarriers(1, "full")[0], empty = kb.mbarriers(1, "empty")[0];
  one_thread([&] {
    full.init(1);
    empty.init(128);                                    // all 128 consumers hand the tile back
    fence_mbarrier_init();
  });
  sync_threads();
  warpgroup(1, [&] {
    one_thread([&] {
      for_range(0, tiles, [&](Value i) {
        empty.wait(1 - i % 2);
        full.arrive_expect_tx(x.tile_bytes());
        tma_load(tile, x, {i * 8, 0}, full);
      });
    });
  });
  warpgroup(0, [&] {
    Var sum(f32, 0.0);
    for_range(0, tiles, [&](Value i) {
      full.wait(i % 2);
      for (int row = 0; row < 8; ++row)
        sum = sum + tile(row, warpgroup_thread_id());
      fence_async_shared();
      one_thread([&] { empty.arrive(); });              // and one of them does
    });
    y(warpgroup_thread_id()) = sum;
  });
  return kb.build();
}
