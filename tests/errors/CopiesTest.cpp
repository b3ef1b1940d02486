// Copies: what is refused of TMA stores, barriers, clusters and epilogues.
#include "Refused.h"

using namespace errors;

TEST(TmaErrors, OptionsOfTheMap) {
  KernelBuilder kb("k", {.threads = 32});
  TmaOptions options{.tile = {2, 4, 64}, .element_strides = {1, 1}};
  refused(
      __LINE__, [&] { kb.tensor_map("a", f16, {8, 8, 64}, options); },
      "tensor map 'a' has 3 dimensions and 2 element strides");
  options.element_strides = {9, 1, 1};
  refused(
      __LINE__, [&] { kb.tensor_map("b", f16, {8, 8, 64}, options); },
      "tensor map 'b' has an element stride of 9 in dimension 0; TMA takes 1 "
      "to 8, and 1 in the innermost");
  options.element_strides = {1, 1, 2};
  refused(
      __LINE__, [&] { kb.tensor_map("c", f16, {8, 8, 64}, options); },
      "tensor map 'c' has an element stride of 2 in dimension 2; TMA takes 1 "
      "to 8, and 1 in the innermost");
  options = {.tile = {1, 200, 64}, .element_strides = {1, 2, 1}};
  refused(
      __LINE__, [&] { kb.tensor_map("d", f16, {8, 8, 64}, options); },
      "tensor map 'd' takes 200 elements of dimension 1, every 2th: a box of "
      "400, and a box has at most 256");
  options = {.tile = {0, 8, 64}};
  refused(
      __LINE__, [&] { kb.tensor_map("e", f16, {8, 8, 64}, options); },
      "tensor map 'e' has a tile of 0 elements in dimension 0; 1 to 256 are "
      "possible");
}

TEST(TmaErrors, MapsMadeInTheKernel) {
  KernelBuilder kb("k", {.threads = 32});
  TmaTensor map = kb.tensor_map("a", f16, {8, 64}, {.tile = {8, 64}});
  Tensor rooms = kb.tensor("rooms", u8, {128});
  Tensor pointers = kb.tensor("pointers", u64, {1});
  SharedTile tile = kb.shared(map.tile());
  refused(
      __LINE__, [&] { map.at(pointers(0), tile(0, 0)); },
      "TmaTensor::at of tensor map 'a' was given room in shared memory; TMA "
      "reads maps from global memory");
  refused(
      __LINE__, [&] { map.at(pointers(0), rooms(0), {.shape = {8}}); },
      "TmaTensor::at of tensor map 'a' was given 1 extents; it takes 2 or "
      "none");
  refused(
      __LINE__, [&] { map.at(pointers(0), rooms(0), {.strides = {8, 1}}); },
      "TmaTensor::at of tensor map 'a' was given 2 strides; it takes 1 or "
      "none");
  Tensor found = kb.tensor_at(pointers(0), f16, {8, 64});
  refused(
      __LINE__, [&] { kb.tensor_map(found, {.tile = {8, 64}}); },
      "a tensor map of a tensor at an address that only the kernel knows; "
      "TmaTensor::at makes one of a map that is a parameter");
}

TEST(TmaErrors, TensorsAtAnAddress) {
  KernelBuilder kb("k", {.threads = 32});
  Tensor pointers = kb.tensor("pointers", u64, {1});
  SharedTile tile = kb.shared({f32, 8, 32});
  for (int alignment : {2, 12, 32})
    refused(
        __LINE__, [&] { kb.tensor_at(pointers(0), f32, {8}, {}, alignment); },
        fmt::format("a tensor of f32 at an address with an alignment of {}; it "
                    "takes a power of two from 4 to 16 bytes",
                    alignment));
  refused(
      __LINE__, [&] { kb.tensor_at(pointers(0), f32, {}); },
      "tensor 'at an address' has 0 dimensions; 1 to 5 are possible");
  refused(
      __LINE__, [&] { kb.tensor_at(tile(0, 0).address(), f32, {8}); },
      "expected a value of type u64, found u32; `cast` converts");
  TmaTensor map = kb.tensor_map("a", f16, {8, 64}, {.tile = {8, 64}});
  refused(
      __LINE__, [&] { kb.tensor_at(map.map(), f16, {8}); },
      "a tensor map's address; a tensor lies in global memory");
  // What an element's address is of, read as another type.
  EXPECT_EQ(kb.tensor_at(pointers(0).address(), u32, {2}).type(), u32);
}

TEST(TmaErrors, StridesAndInterleaving) {
  KernelBuilder kb("k", {.threads = 32});
  TmaOptions options{.tile = {1, 8, 64}};
  std::vector<Dim> strides = {516, 64, 1};
  refused(
      __LINE__, [&] { kb.tensor_map("a", f16, {4, 8, 64}, options, strides); },
      "the planes of tensor map 'a' are 1032 bytes apart; TMA needs a multiple "
      "of 16 (a multiple of 8 elements of f16)");
  options = {.tile = {8, 64}, .interleave = Interleave::b16};
  refused(
      __LINE__, [&] { kb.tensor_map("b", f16, {8, 64}, options); },
      "tensor map 'b' is interleaved by 16 bytes and has 2 dimensions; an "
      "interleaved tensor has 3 to 5");
  options = {.tile = {1, 8, 64}, .interleave = Interleave::b32};
  refused(
      __LINE__, [&] { kb.tensor_map("c", f16, {4, 8, 64}, options); },
      "tensor map 'c' is interleaved by 32 bytes; TMA needs a swizzle of 32 "
      "with it");
}

namespace {
/// A map, a tile of it and one that is not.
struct StoreErrors : testing::Test {
  KernelBuilder kb{"k", {.threads = 32, .cluster = {2}}};
  TmaTensor a = kb.tensor_map("a", f16, {64, 64}, {.tile = {8, 64}});
  SharedTile tile = kb.shared(a.tile());
  SharedTile other = kb.shared({f16, 8, 64, Swizzle::b128});
  Mbarrier full = kb.mbarriers(1)[0];
};
} // namespace

TEST_F(StoreErrors, Tiles) {
  refused(
      __LINE__, [&] { tma_store(a, {0, 0}, other); },
      "tensor map 'a' stores tiles 8x64 f16 and the shared tile is 8x64 f16, "
      "swizzle 128; they must be the same");
  refused(
      __LINE__, [&] { tma_store(a, {0, 0, 0}, tile); },
      "tensor map 'a' has 2 dimensions; the origin has 3");
  refused(
      __LINE__, [&] { tma_store_wait_read(-1); },
      "-1 groups of stores cannot be in flight; 0 or more can");
}

TEST_F(StoreErrors, Reductions) {
  TmaTensor bytes = kb.tensor_map("bytes", u8, {64, 64}, {.tile = {8, 64}});
  SharedTile eight = kb.shared(bytes.tile());
  Reduction add = Reduction::add, flip = Reduction::bit_xor;
  refused(
      __LINE__, [&] { tma_reduce_store(add, bytes, {0, 0}, eight); },
      "TMA cannot reduce 'bytes' of u8 by add; it takes i32, u32, u64, f16, "
      "bf16, f32, f64");
  refused(
      __LINE__, [&] { tma_reduce_store(flip, a, {0, 0}, tile); },
      "TMA cannot reduce 'a' of f16 by bit_xor; it takes i32, u32, i64, u64");
}

TEST_F(StoreErrors, Policies) {
  for (double fraction : {0.0, -0.5, 1.5})
    refused(
        __LINE__, [&] { l2_policy(L2Eviction::first, fraction); },
        fmt::format("an L2 policy for {} of the lines; a fraction above 0 and "
                    "up to 1 is possible",
                    fraction));
  refused(
      __LINE__, [&] { a.with_policy(thread_id()); },
      "expected a value of type u64, found i32; `cast` converts");
}

TEST_F(StoreErrors, Multicast) {
  for (int mask : {0, 4})
    refused(
        __LINE__, [&] { tma_load_multicast(tile, a, {0, 0}, full, mask); },
        fmt::format("the mask {:#x} does not name CTAs of a cluster of 2; 0x1 "
                    "to 0x3 do",
                    mask));
}

TEST_F(StoreErrors, PlainCopies) {
  Tensor line = kb.tensor("line", f16, {4096});
  refused(
      __LINE__, [&] { bulk_copy(other, line, {0}, 64, full); },
      "bulk_copy knows no swizzle, and the shared tile is 8x64 f16, swizzle "
      "128; use a tensor map or a tile without one");
  for (int bytes : {0, 24, 1040})
    refused(
        __LINE__, [&] { bulk_copy(line, {0}, tile, bytes); },
        fmt::format("bulk_copy of {} bytes with a tile of 1024; it takes a "
                    "multiple of 16 up to that",
                    bytes));
}

TEST_F(StoreErrors, OutsideOneThread) {
  Tensor line = kb.tensor("line", f16, {4096});
  std::string message = " stands where each of 32 threads issues the same "
                        "copy; one thread copies for all: put it inside "
                        "one_thread";
  refused(
      __LINE__, [&] { tma_load(tile, a, {0, 0}, full); }, "tma_load" + message);
  refused(
      __LINE__, [&] { tma_load_multicast(tile, a, {0, 0}, full, 3); },
      "tma_load_multicast" + message);
  refused(__LINE__, [&] { tma_store(a, {8, 0}, tile); }, "tma_store" + message);
  refused(
      __LINE__, [&] { tma_reduce_store(Reduction::add, a, {0, 0}, tile); },
      "tma_reduce_store" + message);
  refused(
      __LINE__, [&] { bulk_copy(tile, line, {block_id()}, 64, full); },
      "bulk_copy" + message);
  refused(
      __LINE__, [&] { bulk_copy(line, {0}, tile, 64); }, "bulk_copy" + message);
  // Loops and conditions that are the same for all threads choose none.
  unsigned at = __LINE__ + 1;
  auto load = [&](const At &row) { tma_load(tile, a, {row, 0}, full); };
  refused(
      at, [&] { for_range(0, 4, [&](Value i) { load(i * 8); }); },
      "tma_load" + message);
  refused(
      at, [&] { if_(block_id() == 0, [&] { load(0); }); },
      "tma_load" + message);
}

TEST_F(StoreErrors, CopiesOfChosenThreads) {
  Tensor line = kb.tensor("line", f16, {4096});
  auto load = [&] { tma_load(tile, a, {0, 0}, full); };
  one_thread(load);
  if_(thread_id() == 0, load);
  predicated(elect(), load);
  for_range(0, 4, [&](Value i) { if_(thread_id() == i, load); });
  // Each thread has bytes of its own, or what this cannot tell.
  tma_load(tile, a, {thread_id() * 8, 0}, full);
  bulk_copy(line, {thread_id() * 64}, tile, 16);
  Var row(i32, 0);
  tma_load(tile, a, {row, 0}, full);
}

TEST_F(StoreErrors, OutsideOneThreadOfARole) {
  KernelBuilder roles("roles", {.warpgroups = 3});
  TmaTensor b = roles.tensor_map("b", f16, {64, 64}, {.tile = {8, 64}});
  SharedTile room = roles.shared(b.tile());
  Mbarrier ready = roles.mbarriers(1)[0];
  unsigned line = __LINE__ + 1;
  auto load = [&] { tma_load(room, b, {0, 0}, ready); };
  refused(
      line, [&] { warpgroup(0, load); },
      "tma_load stands where each of 128 threads issues the same copy; one "
      "thread copies for all: put it inside one_thread");
  refused(
      line, [&] { warpgroups(1, 2, {}, [&](Value) { load(); }); },
      "tma_load stands where each of 256 threads issues the same copy; one "
      "thread copies for all: put it inside one_thread");
}

TEST_F(StoreErrors, Barriers) {
  refused(
      __LINE__, [&] { full.arrive(0); },
      "an mbarrier counts 1 to 1048575 arrivals, not 0");
  refused(
      __LINE__, [&] { full.expect_tx(1 << 20); },
      "an mbarrier counts 0 to 1048575 bytes, not 1048576");
  refused(
      __LINE__, [&] { full.try_wait(0, -1); },
      "try_wait was given -1 nanoseconds to suspend; 0 or more are possible");
  refused(
      __LINE__, [&] { full.remote(2); }, "there is no CTA 2 in a cluster of 2");
}

TEST_F(StoreErrors, ClusterBarrierInOneThread) {
  unsigned line = __LINE__ + 1;
  std::function<void()> alone = [] { cluster_sync(); };
  refused(
      line, [&] { one_thread(alone); },
      "cluster_arrive stands inside one_thread; every thread of the cluster "
      "meets at its barrier");
}

TEST_F(StoreErrors, RemoteTiles) {
  refused(
      __LINE__, [&] { map_shared(tile.transpose(), 0); },
      "map_shared takes a tile as it is stored, not its transpose; swap the "
      "indices instead");
}

TEST(GridErrors, MoreThanThereAre) {
  unsigned declared = __LINE__ + 1;
  KernelBuilder kb("k", {.threads = 32});
  kb.grid(1, 70000);
  refused(
      declared, [&] { kb.module(); },
      "the grid of kernel k has 70000 CTAs along y; 1 to 65535 are possible");
  kb.grid(0);
  refused(
      declared, [&] { kb.module(); },
      "the grid of kernel k has 0 CTAs along x; 1 to 2147483647 are possible");
}

TEST(ClusterErrors, Shapes) {
  for (ClusterShape shape : {ClusterShape{0}, ClusterShape{3, 3}}) {
    KernelOptions options{.threads = 32, .cluster = shape};
    refused(
        __LINE__, [&] { KernelBuilder("k", options); },
        fmt::format("kernel k has clusters of {}x{}x1 CTAs; sm_90a takes 1 to "
                    "8 in all, at least 1 along each axis",
                    shape.x, shape.y));
  }
  unsigned declared = __LINE__ + 1;
  KernelBuilder kb("k", {.threads = 32, .cluster = {1, 2}});
  kb.grid(4, 3);
  refused(
      declared, [&] { kb.module(); },
      "the grid of kernel k has 3 CTAs along y; with clusters of 2 it must be "
      "a multiple of 2");
}

namespace {
/// An accumulator and a map it could be stored to.
struct EpilogueErrors : testing::Test {
  KernelBuilder kb{"k", {.warpgroups = 2}};
  TmaTensor d = kb.tensor_map("d", f32, {64, 64}, {.tile = {64, 64}});
  Epilogue out{kb, d};
  Accumulator acc{f32, 64, 64};
};
} // namespace

TEST_F(EpilogueErrors, Shapes) {
  TmaTensor line = kb.tensor_map("line", f32, {64}, {.tile = {64}});
  refused(
      __LINE__, [&] { Epilogue(kb, line); },
      "an accumulator is stored to 2 dimensions or more; tensor map 'line' has "
      "1");
  TmaTensor low = kb.tensor_map("low", f32, {64, 64}, {.tile = {32, 64}});
  refused(
      __LINE__, [&] { Epilogue(kb, low); },
      "tensor map 'low' is stored in tiles of 32 rows; an accumulator goes out "
      "in multiples of 64");
  Tensor plain = kb.tensor("plain", f16, {64, 63});
  refused(
      __LINE__, [&] { Epilogue(kb, plain, 64, 20); },
      "the tensor is stored in tiles of 20 columns; an accumulator goes out in "
      "multiples of 8");
  refused(
      __LINE__, [&] { Epilogue(kb, d, {.buffers = 0}); },
      "an epilogue of 1 warpgroups with 0 buffers each; at least 1 of both is "
      "needed");
  Accumulator wide(f32, 64, 96);
  refused(
      __LINE__, [&] { out.store(wide, {0, 0}); },
      "an accumulator of 64x96 is not covered by the tiles of tensor map 'd', "
      "64x64 f32");
  refused(
      __LINE__, [&] { out.store(acc, {0, 0, 0}); },
      "tensor map 'd' has 2 dimensions; the origin has 3");
}

TEST_F(EpilogueErrors, WhoCalls) {
  refused(
      __LINE__, [&] { out.store(acc, {0, 0}); },
      "sync_warpgroup is called by one warpgroup, and kernel k has 256 "
      "threads here; call it in the role of a warpgroup");
  unsigned line = __LINE__ + 1;
  auto store = [&] { out.store(acc, {0, 0}); };
  refused(
      line, [&] { warpgroup(0, [&] { one_thread(store); }); },
      "sync_warpgroup stands inside one_thread; all 128 threads of the "
      "warpgroup meet there");
}

TEST_F(EpilogueErrors, Elements) {
  refused(
      __LINE__, [&] { acc.element(32); },
      "there is no element 32 in an accumulator of 64x64, of which a thread "
      "holds 32");
}

namespace {
/// A tile that others could lie over.
struct PlaceErrors : testing::Test {
  KernelBuilder kb{"k", {.threads = 32}};
  TileLayout layout{f16, 8, 64};
  SharedTile below = kb.shared(layout);
};
} // namespace

TEST_F(PlaceErrors, OffsetsAndOverlays) {
  unsigned line = __LINE__ + 1;
  kb.mbarriers(2);
  refused(
      __LINE__, [&] { kb.shared(layout, {.offset = 64}); },
      "tile 8x64 f16 at byte 64 of shared memory; it must begin at a multiple "
      "of 128");
  refused(
      __LINE__, [&] { kb.shared(layout, {.offset = 0, .over = below}); },
      "a tile is placed at an offset or over another one, not both");
  refused(
      __LINE__, [&] { kb.shared({f16, 16, 64}, {.over = below}); },
      fmt::format("tile 16x64 f16, bytes 0 to 2047 of shared memory, lies over "
                  "2 mbarriers at 1024 ({}); barriers keep their place",
                  at(line)));
  SharedTile part = kb.shared_array(layout, 2)[1];
  refused(
      __LINE__, [&] { kb.shared(layout, {.over = part}); },
      "a tile is placed over 8x64 f16, which is no tile this kernel "
      "allocated; name the tile or array itself, not a part of it");
}
