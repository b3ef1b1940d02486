// Step 9: two CTAs multiply together. Adds pairs: one product of 256x256, whose
// operands and sums are spread over two multiprocessors.
//
//                    B rows 0..127   B rows 128..255
//                      (CTA 0)           (CTA 1)
//     A rows   0..127 (CTA 0) |  sums of CTA 0: 128 lanes x 256 columns
//     A rows 128..255 (CTA 1) |  sums of CTA 1: 128 lanes x 256 columns
//
// Each CTA loads 128 rows of A and 128 rows of B, as much as before; the tensor
// cores read each other's B. So every number of B that is loaded serves twice
// as many sums, and loading costs half of what it did.
#include "ladder.h"

using namespace kiln;

namespace ladder {

static constexpr int kSlots = 4, kPair = 2;
static constexpr int kMmaM = kPair * kTileM, kMmaN = kPair * kTileN;

namespace {
struct PairRoles {
  TmaTensor a, b;
  TileScheduler &scheduler;
  Epilogue &out;
  Pipeline &pipeline;
  Mbarrier mma2ld, ld2mma;
  TensorTile acc;
  Value rank; ///< of this CTA in its pair
  int k_tiles;

  void load() const;
  void multiply() const;
  void store() const;
};
} // namespace

// In both CTAs, each its own part. All bytes are announced to and counted by
// the barrier of CTA 0, which multiplies: Pipeline reaches it in the cluster.
void PairRoles::load() const {
  scheduler.for_each([&](const OutputTile &tile) {
    for_range(0, k_tiles, [&](Value i) {
      Slot slot = pipeline.reserve();
      slot.load(a, {tile.m * kMmaM + rank * kTileM, i * kTileK});
      slot.load(b, {tile.n * kMmaN + rank * kTileN, i * kTileK});
      pipeline.commit(slot);
    });
  });
}

// In CTA 0 alone. What a commit has to say both CTAs must hear: the mask 3 has
// a bit for each. `release` does it for the slots.
void PairRoles::multiply() const {
  Var free(i32, 1);
  scheduler.for_each([&](const OutputTile &) {
    ld2mma.wait(free, Scope::cluster);
    free = free ^ 1;
    tensor_fence_after();
    for_range(0, k_tiles, [&](Value i) {
      Slot slot = pipeline.acquire();
      acc.mma(slot[a], slot[b].transpose(), {.add = i != 0});
      pipeline.release(slot);
    });
    mma2ld.arrive_products({.cta_group = kPair, .cta_mask = 3});
  });
}

// In both CTAs, each its 128 rows of all 256 columns. The next product writes
// the sums of both, so all 256 threads arrive at the barrier of CTA 0.
void PairRoles::store() const {
  Var done(i32, 0);
  scheduler.for_each([&](const OutputTile &tile) {
    mma2ld.wait(done);
    done = done ^ 1;
    tensor_fence_after();
    out.store(acc, {tile.m * kMmaM + rank * kTileM, tile.n * kMmaN});
    tensor_fence_before();
    ld2mma.remote(0).arrive();
  });
  out.finish();
}

// A pair is a cluster of two; its one tile is shared by both (`split`). Nobody
// touches a barrier of the other CTA before that has made it, or after it is
// gone: the cluster meets in the beginning and at the end.
Module cta_pair(const Shape &shape, int ctas) {
  KernelBuilder kb(
      "hgemm_v9",
      {.warpgroups = 2, .cluster = {.x = kPair}, .target = "sm_100a"});
  TmaTensor a =
      kb.tensor_map("a", f16, {shape.m, shape.k},
                    {.tile = {kTileM, kTileK}, .swizzle = Swizzle::b128});
  TmaTensor b =
      kb.tensor_map("b", f16, {shape.n, shape.k},
                    {.tile = {kTileN, kTileK}, .swizzle = Swizzle::b128});
  TmaTensor d =
      kb.tensor_map("d", f16, {shape.m, shape.n},
                    {.tile = {kTileM, kEpilogueN}, .swizzle = Swizzle::b128});
  TileScheduler scheduler(
      kb, shape.m / kMmaM, shape.n / kMmaN, 1,
      {.is_persistent = true, .ctas = ctas, .split = kPair});
  Mbarrier mma2ld = kb.mbarriers(1, "mma2ld")[0],
           ld2mma = kb.mbarriers(1, "ld2mma")[0];
  one_thread([&] {
    mma2ld.init(1);
    ld2mma.init(128 * kPair);
  });
  Pipeline pipeline(kb, kSlots, {a, b}, {.tensor_group = kPair});
  TensorMemory memory(kb, 512, {.cta_group = kPair});
  Epilogue out(kb, d, {.load_columns = kLoadN});
  PairRoles roles{a,
                  b,
                  scheduler,
                  out,
                  pipeline,
                  mma2ld,
                  ld2mma,
                  memory.tile(f32, kTileM, kMmaN),
                  cluster_rank(),
                  shape.k / kTileK};
  warpgroup(1, [&] {
    one_thread_of(3, [&] { roles.load(); });
    if_(roles.rank == 0, [&] { one_thread_of(0, [&] { roles.multiply(); }); });
  });
  warpgroup(0, [&] { roles.store(); });
  return kb.module();
}

} // namespace ladder

int main() {
  ladder::Shape shape{512, 512, 192};
  return ladder::launch(ladder::cta_pair(shape, 4), shape);
}
