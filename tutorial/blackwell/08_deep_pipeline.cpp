// Step 8: four slots. Adds depth: with two slots each load has the time of one
// product to arrive, with four that of three.
//
// Only the number changes, and with it the length of four arrays. So this step
// hands slots, barriers and parities to Pipeline, which the Hopper kernels use
// too: `tensor_group` says that slots are read by products of tensor memory.
//
//     step 7                                   here
//     mma2tma[slot].wait, expect, load         pipeline.produce
//     tma2mma[slot].wait                       pipeline.acquire
//     mma2tma[slot].arrive_products            pipeline.release
#include "ladder.h"

using namespace kiln;

namespace ladder {

static constexpr int kSlots = 4;

namespace {
struct DeepRoles {
  TmaTensor a, b;
  TileScheduler &scheduler;
  Epilogue &out;
  Pipeline &pipeline;
  Mbarrier mma2ld, ld2mma;
  TensorTile acc;
  int k_tiles;

  void load() const;
  void multiply() const;
  void store() const;
};
} // namespace

void DeepRoles::load() const {
  scheduler.for_each([&](const OutputTile &tile) {
    for_range(0, k_tiles, [&](Value i) {
      Slot slot = pipeline.reserve();
      slot.load(a, {tile.m * kTileM, i * kTileK});
      slot.load(b, {tile.n * kTileN, i * kTileK});
      pipeline.commit(slot);
    });
  });
}

// A slot that is released goes back when the products issued so far are
// finished: `release` is a commit, and nobody waits.
void DeepRoles::multiply() const {
  Var free(i32, 1);
  scheduler.for_each([&](const OutputTile &) {
    ld2mma.wait(free);
    free = free ^ 1;
    tensor_fence_after();
    for_range(0, k_tiles, [&](Value i) {
      Slot slot = pipeline.acquire();
      acc.mma(slot[a], slot[b].transpose(), {.add = i != 0});
      pipeline.release(slot);
    });
    mma2ld.arrive_products();
  });
}

void DeepRoles::store() const {
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

Module deep_pipeline(const Shape &shape, int ctas) {
  KernelBuilder kb("hgemm_v8", {.warpgroups = 2, .target = "sm_100a"});
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
  Mbarrier mma2ld = kb.mbarriers(1, "mma2ld")[0],
           ld2mma = kb.mbarriers(1, "ld2mma")[0];
  one_thread([&] {
    mma2ld.init(1);
    ld2mma.init(128);
  });
  Pipeline pipeline(kb, kSlots, {a, b}, {.tensor_group = 1});
  TensorMemory memory(kb, 512);
  Epilogue out(kb, d, {.load_columns = kLoadN});
  DeepRoles roles{a,
                  b,
                  scheduler,
                  out,
                  pipeline,
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
  ladder::Shape shape{384, 256, 512};
  return ladder::launch(ladder::deep_pipeline(shape, 4), shape);
}
