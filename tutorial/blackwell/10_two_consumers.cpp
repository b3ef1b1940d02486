// Step 10: two accumulators. Adds a second warp that multiplies and a second
// warpgroup that stores: 512x256 by a pair of CTAs, all of tensor memory.
//
//     warpgroup 2, warp 3      loads 256 rows of A and 128 rows of B
//     warpgroup 2, warps 0, 1  multiply: rows 0..127 and 128..255 of that A
//     warpgroups 0, 1          store the sums of warp 0 and of warp 1
//
// B is loaded once for both. And while the sums of one are stored, the tensor
// core is busy with those of the other.
#include "ladder.h"

using namespace kiln;

namespace ladder {

static constexpr int kSlots = 4, kPair = 2, kConsumers = 2;
static constexpr int kCtaM = kConsumers * kTileM; // rows of one CTA
static constexpr int kPairM = kPair * kCtaM, kMmaN = kPair * kTileN;

namespace {
struct ConsumerRoles {
  TmaTensor a, b;
  TileScheduler &scheduler;
  Epilogue &out;
  Pipeline &pipeline;
  MbarrierArray mma2ld, ld2mma; ///< of each consumer
  TensorTileArray accs;         ///< likewise
  Value rank;
  int k_tiles;

  void load() const;
  void multiply(int consumer) const;
  void store(const Value &consumer) const;
};
} // namespace

void ConsumerRoles::load() const {
  scheduler.for_each([&](const OutputTile &tile) {
    for_range(0, k_tiles, [&](Value i) {
      Slot slot = pipeline.reserve();
      slot.load(a, {tile.m * kPairM + rank * kCtaM, i * kTileK});
      slot.load(b, {tile.n * kMmaN + rank * kTileN, i * kTileK});
      pipeline.commit(slot);
    });
  });
}

// Both multiply from every slot, which goes back when both are done with it:
// the pipeline has two consumers.
void ConsumerRoles::multiply(int consumer) const {
  Var free(i32, 1);
  TensorTile acc = accs[consumer];
  scheduler.for_each([&](const OutputTile &) {
    ld2mma[consumer].wait(free, Scope::cluster);
    free = free ^ 1;
    tensor_fence_after();
    for_range(0, k_tiles, [&](Value i) {
      Slot slot = pipeline.acquire();
      SharedTile rows = slot[a].slice(consumer * kTileM, 0, kTileM, kTileK);
      acc.mma(rows, slot[b].transpose(), {.add = i != 0});
      pipeline.release(slot);
    });
    mma2ld[consumer].arrive_products({.cta_group = kPair, .cta_mask = 3});
  });
}

// One code for both warpgroups; `consumer` is which of them the thread is in.
void ConsumerRoles::store(const Value &consumer) const {
  Var done(i32, 0);
  scheduler.for_each([&](const OutputTile &tile) {
    mma2ld[consumer].wait(done);
    done = done ^ 1;
    tensor_fence_after();
    Value row = tile.m * kPairM + rank * kCtaM + consumer * kTileM;
    out.store(accs[consumer], {row, tile.n * kMmaN}, {}, consumer);
    tensor_fence_before();
    ld2mma[consumer].remote(0).arrive();
  });
  out.finish();
}

Module two_consumers(const Shape &shape, int ctas) {
  KernelBuilder kb(
      "hgemm_v10",
      {.warpgroups = 3, .cluster = {.x = kPair}, .target = "sm_100a"});
  TmaTensor a =
      kb.tensor_map("a", f16, {shape.m, shape.k},
                    {.tile = {kCtaM, kTileK}, .swizzle = Swizzle::b128});
  TmaTensor b =
      kb.tensor_map("b", f16, {shape.n, shape.k},
                    {.tile = {kTileN, kTileK}, .swizzle = Swizzle::b128});
  TmaTensor d =
      kb.tensor_map("d", f16, {shape.m, shape.n},
                    {.tile = {kTileM, kEpilogueN}, .swizzle = Swizzle::b128});
  TileScheduler scheduler(
      kb, shape.m / kPairM, shape.n / kMmaN, 1,
      {.is_persistent = true, .ctas = ctas, .split = kPair});
  MbarrierArray mma2ld = kb.mbarriers(kConsumers, "mma2ld");
  MbarrierArray ld2mma = kb.mbarriers(kConsumers, "ld2mma");
  one_thread([&] {
    for (int i = 0; i < kConsumers; ++i) {
      mma2ld[i].init(1);
      ld2mma[i].init(128 * kPair);
    }
  });
  Pipeline pipeline(kb, kSlots, {a, b},
                    {.consumers = kConsumers, .tensor_group = kPair});
  TensorMemory memory(kb, 512, {.cta_group = kPair});
  Epilogue out(
      kb, d, {.warpgroups = kConsumers, .buffers = 1, .load_columns = kLoadN});
  ConsumerRoles roles{a,
                      b,
                      scheduler,
                      out,
                      pipeline,
                      mma2ld,
                      ld2mma,
                      memory.tiles(f32, kTileM, kMmaN, kConsumers),
                      cluster_rank(),
                      shape.k / kTileK};
  warpgroup(2, [&] {
    one_thread_of(3, [&] { roles.load(); });
    if_(roles.rank == 0, [&] {
      one_thread_of(0, [&] { roles.multiply(0); });
      one_thread_of(1, [&] { roles.multiply(1); });
    });
  });
  warpgroups(0, kConsumers, {}, [&](Value consumer) { roles.store(consumer); });
  return kb.module();
}

} // namespace ladder

int main() {
  ladder::Shape shape{1024, 512, 192};
  return ladder::launch(ladder::two_consumers(shape, 4), shape);
}

// To take away: ten steps, and the arithmetic never changed. What did is who
// waits for whom.
