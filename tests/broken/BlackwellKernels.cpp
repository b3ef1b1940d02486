// BlackwellKernels: the kernels, and where each mistake is made.
#include "broken/BlackwellKernels.h"

namespace kiln::blackwell {

static constexpr int kTileM = 128, kTileK = 64;
static constexpr int kWarpgroup = 128; // threads

Module threads(Flaw flaw) {
  auto [m, n, k] = kThreadsSizes;
  auto has = [&](Flaw name) { return flaw == name; };
  KernelBuilder kb("threads", {.warpgroups = 1, .target = "sm_100a"});
  Tensor a = kb.tensor("a", f16, {m, k}), b = kb.tensor("b", f16, {n, k});
  Tensor d = kb.tensor("d", f16, {m, n});
  kb.grid(1);
  SharedTile a_tile = kb.shared(TileLayout::of(f16, m, kTileK), {.name = "a"});
  SharedTile b_tile = kb.shared(TileLayout::of(f16, n, kTileK), {.name = "b"});
  Mbarrier done = kb.mbarriers(1, "done")[0];
  one_thread([&] {
    done.init(has("128 arrivals of one thread") ? kWarpgroup : 1);
    fence_mbarrier_init();
  });
  TensorMemory memory(kb, 32); // all threads meet there
  TensorTile acc = memory.tile(f32, m, n);

  Var parity(i32, 0);
  for_range(0, k / kTileK, [&](Value i) {
    copy(CopyScope::cta, a_tile, a.slice(1, i * kTileK, kTileK, kTileK));
    copy(CopyScope::cta, b_tile, b.slice(1, i * kTileK, kTileK, kTileK));
    if (!has("no proxy fence before the product"))
      fence_async_shared();
    if (!has("no meeting before the product"))
      sync_threads();
    auto commit = [&] { done.arrive_products(); };
    one_thread([&] {
      acc.mma(a_tile, b_tile.transpose(),
              {.add = has("first product adds") ? i >= 0 : i != 0});
      if (!has("commit by another thread") && !has("no commit"))
        commit();
    });
    if (has("commit by another thread"))
      one_thread_of(1, commit);
    if (!has("tiles written while they are read"))
      done.wait(parity);
    if (!has("parity never turned"))
      parity = parity ^ 1;
  });
  if (has("tiles written while they are read"))
    done.wait(1);
  if (!has("no fence after the wait"))
    tensor_fence_after();
  cast(acc.load(), f16).store(d, {0, 0}, {.is_inside = true});
  return kb.module();
}

namespace {
/// What the roles of the second kernel share.
struct Roles {
  Flaw flaw;
  TmaTensor a, b, d;
  SharedTileArray a_slots, b_slots;
  SharedTile staged;
  MbarrierArray tma2mma, mma2tma;
  Mbarrier mma2ld, ld2mma;
  TensorTile acc;

  static constexpr int kSlots = 2;
  static constexpr int kTiles = kRolesSizes.m / kTileM;
  static constexpr int kSteps = kRolesSizes.k / kTileK;

  bool has(Flaw name) const { return flaw == name; }
  void make_barriers() const;
  void load() const;
  void multiply() const;
  void store() const;
  void store_out(const Value &tile) const;
};
} // namespace

void Roles::make_barriers() const {
  one_thread([&] {
    for (int i = 0; i < kSlots; ++i) {
      tma2mma[i].init(has("128 arrivals of the loader") ? kWarpgroup : 1);
      mma2tma[i].init(1);
    }
    mma2ld.init(has("128 arrivals of the tensor core") ? kWarpgroup : 1);
    ld2mma.init(has("one arrival of 128 threads") ? 1 : kWarpgroup);
    fence_mbarrier_init();
  });
}

void Roles::load() const {
  PipelineState at(kSlots, has("both begin with parity 0") ? 0 : 1);
  int steps = has("the loader does one K tile less")   ? kSteps - 1
              : has("the loader does one K tile more") ? kSteps + 1
                                                       : kSteps;
  int bytes = a.tile_bytes() + b.tile_bytes();
  if (has("only one tile's bytes are announced"))
    bytes = a.tile_bytes();
  if (has("bytes of a tile too many"))
    bytes += b.tile_bytes();
  for_range(0, kTiles, [&](Value tile) {
    for_range(0, steps, [&](Value i) {
      Value slot = at.slot();
      if (!has("slots filled without a wait"))
        mma2tma[slot].wait(at.parity());
      tma2mma[slot].arrive_expect_tx(bytes);
      tma_load(a_slots[slot], a, {tile * kTileM, i * kTileK}, tma2mma[slot]);
      tma_load(b_slots[slot], b, {0, i * kTileK}, tma2mma[slot]);
      at.advance();
    });
  });
}

void Roles::multiply() const {
  PipelineState at(kSlots, has("both begin with parity 1") ? 1 : 0);
  Var free(i32, has("accumulator awaited before it was used") ? 0 : 1);
  for_range(0, kTiles, [&](Value) {
    if (!has("sums overwritten without a wait")) {
      ld2mma.wait(free);
      free = free ^ 1;
    }
    if (!has("no fence before the next products"))
      tensor_fence_after();
    for_range(0, kSteps, [&](Value i) {
      Value slot = at.slot();
      if (!has("multiplied without a wait"))
        tma2mma[slot].wait(at.parity());
      acc.mma(a_slots[slot], b_slots[slot].transpose(), {.add = i != 0});
      if (has("slot released before it was read"))
        mma2tma[slot].arrive();
      else if (!has("slot never released"))
        mma2tma[slot].arrive_products();
      if (!has("the multiplier stays at one slot"))
        at.advance();
    });
    if (!has("sums never announced"))
      mma2ld.arrive_products();
  });
}

// One subtile is the whole tile: it waits for the one before it.
void Roles::store_out(const Value &tile) const {
  RegisterTile sums = cast(acc.load(), f16);
  if (!has("no fence before the sums are given back"))
    tensor_fence_before();
  if (!has("sums never given back"))
    ld2mma.arrive();
  if (!has("staged over a store that reads"))
    one_thread([&] { tma_store_wait_read(0); });
  sync_warpgroup();
  sums.store(staged);
  if (!has("no proxy fence before the store"))
    fence_async_shared();
  if (!has("no meeting before the store"))
    sync_warpgroup();
  one_thread([&] {
    tma_store(d, {tile * kTileM, 0}, staged);
    if (!has("store never committed"))
      tma_store_commit();
  });
}

void Roles::store() const {
  Var done(i32, 0), tile(i32, 0);
  auto next = [&] {
    done = done ^ 1;
    tile = tile + 1;
  };
  while_([&] { return tile < kTiles; },
         [&] {
           if (has("CTA barrier in a role"))
             inline_ptx("bar.sync 0;", {});
           mma2ld.wait(done);
           if (!has("no fence before the sums are loaded"))
             tensor_fence_after();
           if (has("sums given back before they are loaded")) {
             tensor_fence_before();
             ld2mma.arrive();
             cast(acc.load(), f16).store(staged);
           } else {
             store_out(tile);
           }
           if (has("next tile of one warp alone"))
             if_(warp_id() == 0, next);
           else if (has("next tile of some lanes alone"))
             if_(lane_id() < 16, next);
           else
             next();
         });
  if (!has("leaves while a store reads"))
    one_thread([&] { tma_store_wait_read(0); });
}

Module roles(Flaw flaw) {
  auto [m, n, k] = kRolesSizes;
  KernelBuilder kb("roles", {.warpgroups = 2, .target = "sm_100a"});
  auto map = [&](const char *name, int rows, int columns, int tile_rows) {
    return kb.tensor_map(
        name, f16, {rows, columns},
        {.tile = {tile_rows, kTileK}, .swizzle = Swizzle::b128});
  };
  TmaTensor a = map("a", m, k, kTileM), b = map("b", n, k, n),
            d = map("d", m, n, kTileM);
  kb.grid(1);
  SharedTileArray a_slots =
      kb.shared_array(a.tile(), Roles::kSlots, {.name = "a"});
  SharedTileArray b_slots =
      kb.shared_array(b.tile(), Roles::kSlots, {.name = "b"});
  SharedTile staged = kb.shared(d.tile(), {.name = "staged"});
  MbarrierArray tma2mma = kb.mbarriers(Roles::kSlots, "tma2mma"),
                mma2tma = kb.mbarriers(Roles::kSlots, "mma2tma");
  Mbarrier mma2ld = kb.mbarriers(1, "mma2ld")[0],
           ld2mma = kb.mbarriers(1, "ld2mma")[0];
  TensorMemory memory(kb, 64);
  Roles all{flaw,    a,       b,      d,
            a_slots, b_slots, staged, tma2mma,
            mma2tma, mma2ld,  ld2mma, memory.tile(f32, kTileM, n)};
  bool is_nested = all.has("barriers made in a role");
  if (!is_nested) {
    all.make_barriers();
    sync_threads();
  }
  warpgroup(1, [&] {
    one_thread_of(3, [&] { all.load(); });
    one_thread_of(0, [&] { all.multiply(); });
  });
  warpgroup(0, [&] {
    if (is_nested)
      all.make_barriers();
    all.store();
  });
  return kb.module();
}

namespace {
/// What the roles of a pair share.
struct Pair {
  Flaw flaw;
  TmaTensor a, b;
  Tensor d;
  Pipeline &pipeline;
  Mbarrier mma2ld, ld2mma;
  TensorTile acc;
  Value rank;

  static constexpr int kCtas = 2;
  static constexpr int kTiles = kPairSizes.m / (kCtas * kTileM);
  static constexpr int kSteps = kPairSizes.k / kTileK;
  static constexpr int kN = kPairSizes.n; ///< of the pair

  bool has(Flaw name) const { return flaw == name; }
  Value row(const Value &tile) const {
    return tile * (kCtas * kTileM) + rank * kTileM;
  }
  void load() const;
  void multiply() const;
  void store() const;
};
} // namespace

void Pair::load() const {
  for_range(0, kTiles, [&](Value tile) {
    for_range(0, kSteps, [&](Value i) {
      Slot slot = pipeline.reserve();
      slot.load(a, {row(tile), i * kTileK});
      slot.load(b, {rank * (kN / kCtas), i * kTileK});
      pipeline.commit(slot);
    });
  });
}

void Pair::multiply() const {
  Var free(i32, 1);
  for_range(0, kTiles, [&](Value) {
    ld2mma.wait(free, has("the other CTA's loads awaited as one's own")
                          ? Scope::cta
                          : Scope::cluster);
    free = free ^ 1;
    tensor_fence_after();
    for_range(0, kSteps, [&](Value i) {
      Slot slot = pipeline.acquire();
      acc.mma(slot[a], slot[b].transpose(), {.add = i != 0});
      pipeline.release(slot);
    });
    int mask = has("only the first CTA hears")       ? 1
               : has("CTAs hear that are not there") ? 12
                                                     : 3;
    mma2ld.arrive_products({.cta_group = kCtas, .cta_mask = mask});
  });
}

void Pair::store() const {
  Var done(i32, 0);
  for_range(0, kTiles, [&](Value tile) {
    mma2ld.wait(done);
    done = done ^ 1;
    tensor_fence_after();
    RegisterTile sums = acc.load();
    tensor_fence_before();
    if (has("each CTA tells itself"))
      ld2mma.arrive();
    else
      ld2mma.remote(0).arrive();
    cast(sums, f16).store(d, {row(tile), 0}, {.is_inside = true});
  });
}

Module pair(Flaw flaw) {
  auto [m, n, k] = kPairSizes;
  KernelBuilder kb(
      "pair",
      {.warpgroups = 2, .cluster = {.x = Pair::kCtas}, .target = "sm_100a"});
  TmaTensor a = kb.tensor_map(
      "a", f16, {m, k}, {.tile = {kTileM, kTileK}, .swizzle = Swizzle::b128});
  TmaTensor b = kb.tensor_map(
      "b", f16, {n, k},
      {.tile = {n / Pair::kCtas, kTileK}, .swizzle = Swizzle::b128});
  Tensor d = kb.tensor("d", f16, {m, n});
  kb.grid(Pair::kCtas);
  Mbarrier mma2ld = kb.mbarriers(1, "mma2ld")[0],
           ld2mma = kb.mbarriers(1, "ld2mma")[0];
  one_thread([&] {
    mma2ld.init(1);
    ld2mma.init(flaw == "the threads of one CTA are counted"
                    ? kWarpgroup
                    : Pair::kCtas * kWarpgroup);
  });
  Pipeline pipeline(kb, 2, {a, b}, {.tensor_group = Pair::kCtas});
  TensorMemory memory(kb, 64, {.cta_group = Pair::kCtas});
  Pair all{flaw,          a,      b,      d,
           pipeline,      mma2ld, ld2mma, memory.tile(f32, kTileM, n),
           cluster_rank()};
  warpgroup(1, [&] {
    one_thread_of(3, [&] { all.load(); });
    auto multiply = [&] { one_thread_of(0, [&] { all.multiply(); }); };
    if (all.has("both CTAs multiply"))
      multiply();
    else
      if_(all.rank == 0, multiply);
  });
  warpgroup(0, [&] { all.store(); });
  return kb.module();
}

} // namespace kiln::blackwell
