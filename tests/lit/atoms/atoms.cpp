// atoms: print the PTX of a small kernel around one kind of atom, by name.
//
// The tests beside it look for the instructions each atom becomes; what they
// compute is asked in tests/conformance.
#include <kiln/kiln.h>

#include <cstdio>
#include <functional>
#include <map>
#include <string>

using namespace kiln;

namespace {
/// A kernel of one warp with something to read and to write.
struct OneWarp {
  KernelBuilder kb{"atoms", {.threads = 32}};
  Tensor x = kb.tensor("x", f32, {32, 32});
  Tensor y = kb.tensor("y", f32, {32, 32});
  Tensor words = kb.tensor("words", u32, {32, 32});
  SharedTile tile = kb.shared({.type = f16, .rows = 16, .columns = 16});
  Value lane = thread_id();
};

/// A kernel of one warpgroup with two tiles to multiply.
struct OneWarpgroup {
  KernelBuilder kb{"atoms", {.warpgroups = 1}};
  Tensor x = kb.tensor("x", f16, {64, 64});
  Tensor d = kb.tensor("d", f32, {64, 64});
  SharedTile a = kb.shared(TileLayout::of(f16, 64, 64));
  SharedTile b = kb.shared(TileLayout::of(f16, 64, 64));
};
} // namespace

static void wgmma(OneWarpgroup &k) {
  Accumulator whole(f32, 64, 64), half(f16, 64, 64, 32);
  wgmma_fence();
  whole.issue(k.a.slice(0, 0, 64, 16), k.b.slice(0, 0, 16, 64),
              {.negate_a = true});
  wgmma_commit();
  whole.wait(0);
  half.mma(k.a, k.b.transpose());
  half.wait(0);
  whole.start_from(cast(half.tile(), f32));
  auto layout = RegisterLayout::wgmma_operand(f16, 64, 64);
  whole.mma(load_tile(layout, k.a), k.b);
  whole.store(k.d, {0, 0});
}

static void tiles(OneWarpgroup &k) {
  copy(CopyScope::warpgroup, k.a, k.x);
  sync_warpgroup();
  RegisterTile row = load_tile(RegisterLayout::row_per_thread(128, 8),
                               k.x.reshape({512, 8}), {0, 0});
  row = row + row;
  row.store(k.x.reshape({512, 8}), {128, 0}, {.column_multiple = 8});
  k.kb.named_barriers(1, 128)[0].arrive();
}

static void matrices(OneWarp &k) {
  Element row = k.tile(k.lane % 16, k.lane / 16 * 8);
  Values w = ldmatrix(row, 4);
  stmatrix(row, w);
  w = ldmatrix(row, 2, {.transpose = true});
  stmatrix(row, {movmatrix(w[0]), w[1]}, {.transpose = true});
  stmatrix(row, ldmatrix(row, 1));
}

static void products(OneWarp &k) {
  auto word = [&](int i) -> Value { return k.words(k.lane, i); };
  Values a = {word(0), word(1), word(2), word(3)}, b = {word(4), word(5)};
  Values c(4, constant(f32, 0));
  c = mma({.k = 16}, a, b, c);
  c = mma({.k = 8, .a = bf16, .b = bf16}, {a[0], a[1]}, {b[0]}, c);
  c = mma({.k = 8, .a = tf32, .b = tf32}, a, b, c);
  for (int i = 0; i < 4; ++i)
    k.y(k.lane, i) = c[i];
  Values halves = mma({.k = 16, .accumulator = f16}, a, b, {b[0], b[1]});
  Values sums = mma({.k = 32, .a = i8, .b = u8, .accumulator = i32}, a, b,
                    Values(4, constant(i32, 0)));
  k.words(k.lane, 0) = halves[0] + cast(sums[0], u32);
}

static void packing(OneWarp &k) {
  Value x = k.x(k.lane, 0), y = k.x(k.lane, 1);
  k.words(k.lane, 0) = pack({cast(x, f16), cast(y, f16)});
  k.words(k.lane, 1) = pack(cast(Values{x, y}, bf16));
  k.words(k.lane, 2) = pack(cast(Values{x, y, y, x}, e4m3));
  k.words(k.lane, 3) = pack(cast(Values{x, y, y, x}, e5m2));
  Values halves = cast(unpack(k.words(k.lane, 4), e4m3), f16);
  k.words(k.lane, 4) = pack({halves[0], halves[1]});
  k.words(k.lane, 5) = pack({halves[2], halves[3]});
}

static void pairs(OneWarp &k) {
  Values a = unpack(k.words(k.lane, 0), f16);
  Values b = unpack(k.words(k.lane, 1), f16);
  Values c = unpack(k.words(k.lane, 2), bf16);
  k.words(k.lane, 3) = pack(fma(a, b, a) + b);
  k.words(k.lane, 4) = pack(max(min(c * 3, c - 1), c));
}

static void copies(OneWarp &k) {
  SharedTile tile = k.kb.shared({.type = f32, .rows = 32, .columns = 4});
  Mbarrier barrier = k.kb.mbarriers(1)[0];
  barrier.init(32);
  async_copy(tile(k.lane, 0), k.x(k.lane, 0), 4);
  async_copy(tile(k.lane, 0), k.x(k.lane, 0), 4, {.through_l1 = true});
  async_copy(tile(k.lane, 0), k.x(k.lane, 0), 1, {.valid = k.lane % 2});
  async_copy_commit();
  async_copy_wait(2);
  async_copy_wait_all();
  barrier.arrive_copies();
  barrier.arrive_copies(/*is_extra=*/true);
}

static void predicates(OneWarp &k) {
  Mbarrier barrier = k.kb.mbarriers(1)[0];
  predicated(k.lane == 0, [&] { barrier.init(1); });
  Value x;
  predicated(k.lane < 7, [&] {
    prefetch(k.x(k.lane, 8));
    x = k.x(k.lane, 0);
    barrier.arrive();
    reduce_add(k.words(0, 0), 1);
  });
  predicated(k.lane > 9, [&] { k.y(k.lane, 0) = x; });
}

static void policies(OneWarp &k) {
  TmaTensor a = k.kb.tensor_map("a", f32, {64, 64}, {.tile = {8, 8}});
  SharedTile tile = k.kb.shared(a.tile());
  Mbarrier barrier = k.kb.mbarriers(1)[0];
  TmaTensor once = a.with_policy(l2_policy(L2Eviction::first));
  TmaTensor kept = a.with_policy(l2_policy(L2Eviction::last, 0.5));
  one_thread([&] {
    barrier.init(1);
    barrier.arrive_expect_tx(a.tile_bytes());
    tma_prefetch_tile(once, {0, 0});
    tma_load(tile, once, {0, 0}, barrier);
    fence_async_cluster();
    fence_async_global();
    fence_async();
    tma_store(kept, {0, 0}, tile);
    tma_reduce_store(Reduction::add, kept, {0, 0}, tile);
  });
}

static void loops(OneWarp &k) {
  Value n = k.kb.scalar("n", i32);
  auto add = [&](Value i) { reduce_add(k.words(k.lane, i), 1); };
  for_range(0, n, add, {.unroll = 1});
  Value sum =
      for_range(0, n, 1, {constant(f32, 0)}, [&](Value i, Values carried) {
        return Values{carried[0] + k.x(k.lane, i)};
      })[0];
  k.y(k.lane, 0) = sum;
}

static const std::map<std::string, std::function<void(OneWarp &)>> kAtoms = {
    {"copies", copies},         {"loops", loops},       {"matrices", matrices},
    {"packing", packing},       {"pairs", pairs},       {"policies", policies},
    {"predicates", predicates}, {"products", products},
};

static const std::map<std::string, std::function<void(OneWarpgroup &)>>
    kGroupAtoms = {{"tiles", tiles}, {"wgmma", wgmma}};

int main(int argc, char **argv) {
  auto group = kGroupAtoms.find(argc == 2 ? argv[1] : "");
  if (group != kGroupAtoms.end()) {
    OneWarpgroup kernel;
    group->second(kernel);
    std::puts(kernel.kb.build().ptx.c_str());
    return 0;
  }
  auto found = kAtoms.find(argc == 2 ? argv[1] : "");
  if (found == kAtoms.end()) {
    std::fprintf(stderr, "usage: atoms NAME; the names are the keys of its "
                         "table\n");
    return 2;
  }
  OneWarp kernel;
  found->second(kernel);
  std::puts(kernel.kb.build().ptx.c_str());
}
