// Step 1: one tile, one step after the other. Adds tensor memory and the tensor
// core of Blackwell.
//
//     128 threads | copy A and B to shared memory | fence | meet
//     one thread  |                                            | mma, commit
//     128 threads | wait | load a row of sums each | round | store
//
// On Hopper a warpgroup multiplies, and the sums are in its registers. Here one
// thread does: the tensor core has a memory of its own for sums, 128 lanes of
// 512 columns of 32 bits. A row of D is a lane, and a column of D a column.
// Nobody's registers are taken up while it works.
#include "ladder.h"

using namespace kiln;

namespace ladder {

// Tensor memory is allocated by one warp, which writes the address to shared
// memory for the others; TensorMemory does that, meets all threads, and frees
// it again at the end of the kernel.
//
// The tensor core reads shared memory through a proxy of its own, as TMA does:
// what threads have written there it sees behind fence_async_shared. Without
// that line this kernel is right by chance, and the simulator says so.
//
// `mma` becomes four instructions of 128x128x16. They are done one after the
// other, some time later. arrive_products asks for an arrival at a barrier when
// all of them are finished, and everybody waits there. tensor_fence_after keeps
// the loads behind that wait.
//
// A warp can load the 32 lanes that are its own alone, so that a whole
// warpgroup is needed to see all sums: thread t gets row t, 128 registers.
Module one_tile() {
  KernelBuilder kb("hgemm_v1", {.warpgroups = 1, .target = "sm_100a"});
  Tensor a = kb.tensor("a", f16, {kTileM, kTileK});
  Tensor b = kb.tensor("b", f16, {kTileN, kTileK});
  Tensor d = kb.tensor("d", f16, {kTileM, kTileN});
  kb.grid(1);
  SharedTile a_tile = kb.shared(TileLayout::of(f16, kTileM, kTileK));
  SharedTile b_tile = kb.shared(TileLayout::of(f16, kTileN, kTileK));
  Mbarrier done = kb.mbarriers(1, "done")[0];
  one_thread([&] {
    done.init(1);
    fence_mbarrier_init();
  });
  TensorMemory memory(kb, 512); // all threads meet there
  TensorTile acc = memory.tile(f32, kTileM, kTileN);

  copy(CopyScope::cta, a_tile, a);
  copy(CopyScope::cta, b_tile, b);
  fence_async_shared();
  sync_threads();

  one_thread([&] {
    acc.mma(a_tile, b_tile.transpose());
    done.arrive_products();
  });
  done.wait(0);
  tensor_fence_after();
  cast(acc.load(), f16).store(d, {0, 0}, {.is_inside = true});
  return kb.module();
}

} // namespace ladder

int main() { return ladder::launch(ladder::one_tile(), {128, 128, 64}); }

// To take away: one thread issues, a barrier tells when it is finished, and
// four warps load the sums. Everything else of the ladder is about doing these
// three at the same time.
