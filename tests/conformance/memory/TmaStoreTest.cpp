// TmaStore: tiles on their way out, tensors of every rank, and plain copies.
#include "conformance/Conformance.h"

#include <kiln/run/run.h>

#include <numeric>

using namespace conformance;

class TmaStore : public OnDevice {};
INSTANTIATE_ON_DEVICES(TmaStore);

static constexpr Swizzle kSwizzles[] = {Swizzle::none, Swizzle::b32,
                                        Swizzle::b64, Swizzle::b128};

/// Fill `tile` row by row with 1, 2, ... in all threads.
static void fill(const SharedTile &tile, int threads) {
  int columns = tile.columns();
  for_range(thread_id(), tile.rows() * columns, threads, [&](Value i) {
    tile(i / columns, i % columns) = cast(i + 1, tile.layout().type);
  });
  fence_async_shared();
  sync_threads();
}

/// One thread stores the tile and waits until it is written.
static void store_and_wait(const std::function<void()> &store) {
  one_thread([&] {
    store();
    tma_store_commit();
    tma_store_wait(0);
  });
}

TEST_P(TmaStore, EverySwizzleInsideAndOverTheEdges) {
  const int rows = 40, columns = 72, tile_rows = 16, tile_columns = 64;
  for (Swizzle swizzle : kSwizzles) {
    KernelBuilder kb("store", {.threads = 128});
    TmaTensor out =
        kb.tensor_map("out", u16, {rows, columns},
                      {.tile = {tile_rows, tile_columns}, .swizzle = swizzle});
    Value row = kb.scalar("row", i32), column = kb.scalar("column", i32);
    SharedTile tile = kb.shared(out.tile());
    fill(tile, 128);
    store_and_wait([&] { tma_store(out, {row, column}, tile); });
    Kernel kernel = compile_checked(kb.module());
    EXPECT_TRUE(kernel.contract.arguments[0].is_output);
    EXPECT_EQ(count(kernel.ptx, ".bulk_group [%"), out.tile().panels());
    Device *device = conformance::open(GetParam()).device.get();
    if (!device)
      continue;
    for (auto [row, column] : {std::pair{8, 0}, {7, 8}, {32, 48}, {40, 0}}) {
      std::vector<std::uint16_t> found(rows * columns, 0xFFFF);
      std::vector<std::uint16_t> expected = found;
      for (int r = 0; r < tile_rows; ++r)
        for (int c = 0; c < tile_columns; ++c)
          if (row + r < rows && column + c < columns)
            expected[(row + r) * columns + column + c] =
                static_cast<std::uint16_t>(r * tile_columns + c + 1);
      run(*device, kernel, found, row, column);
      EXPECT_EQ(found, expected) << "swizzle " << static_cast<int>(swizzle)
                                 << " at " << row << ", " << column;
    }
  }
  SKIP_WITHOUT_DEVICE();
}

/// Copy a tile of `in` at `origin` to the same place of `out`, both of that
/// shape, by TMA.
static Kernel copy_tile(const std::vector<Dim> &shape,
                        const TmaOptions &options,
                        const std::vector<At> &origin) {
  KernelBuilder kb("copy", {.threads = 32});
  TmaTensor in = kb.tensor_map("in", i32, shape, options);
  TmaTensor out = kb.tensor_map("out", i32, shape, options);
  SharedTile tile = kb.shared(in.tile());
  Mbarrier full = kb.mbarriers(1)[0];
  one_thread([&] {
    full.init(1);
    fence_mbarrier_init();
    tma_prefetch_tile(in, origin);
    full.arrive_expect_tx(in.tile_bytes());
    tma_load(tile, in, origin, full);
    full.wait(0);
    tma_store(out, origin, tile);
    tma_store_commit();
    tma_store_wait_read(0);
    tma_store_wait(0);
  });
  Kernel kernel = compile_checked(kb.module());
  std::string rank = std::to_string(shape.size()) + "d";
  int boxes = in.tile().panels();
  EXPECT_EQ(count(kernel.ptx, "cp.async.bulk.prefetch.tensor." + rank), boxes);
  EXPECT_EQ(count(kernel.ptx, "cp.async.bulk.tensor." + rank), 2 * boxes);
  EXPECT_EQ(count(kernel.ptx, "wait_group.read"), 1);
  EXPECT_FALSE(kernel.contract.arguments[0].is_output);
  return kernel;
}

namespace {
/// A tensor, the tile of it that is copied, and where that begins.
struct Copy {
  std::vector<int> shape;
  TmaOptions options;
  std::vector<int> origin;

  /// Whether the tile takes element `index` of the tensor.
  bool takes(std::vector<int> index) const {
    for (std::size_t i = 0; i < shape.size(); ++i) {
      int step =
          options.element_strides.empty() ? 1 : options.element_strides[i];
      int at = index[i] - origin[i];
      if (at < 0 || at % step || at / step >= options.tile[i])
        return false;
    }
    return true;
  }
};
} // namespace

/// Run the copy and compare element by element.
static void check_copy(const std::string &id, const Copy &copy) {
  std::vector<Dim> shape(copy.shape.begin(), copy.shape.end());
  std::vector<At> origin(copy.origin.begin(), copy.origin.end());
  Kernel kernel = copy_tile(shape, copy.options, origin);
  Device *device = conformance::open(id).device.get();
  if (!device)
    return;
  int size = 1;
  for (int extent : copy.shape)
    size *= extent;
  std::vector<int> data(size), found(size, -1), expected(size, -1);
  std::iota(data.begin(), data.end(), 1);
  for (int i = 0; i < size; ++i) {
    std::vector<int> index(copy.shape.size());
    for (int axis = static_cast<int>(index.size()) - 1, rest = i; axis >= 0;
         rest /= copy.shape[axis--])
      index[axis] = rest % copy.shape[axis];
    if (copy.takes(index))
      expected[i] = data[i];
  }
  run(*device, kernel, data, found);
  EXPECT_EQ(found, expected) << "rank " << copy.shape.size();
}

TEST_P(TmaStore, RanksOneToFive) {
  check_copy(GetParam(), {{200}, {.tile = {64}}, {160}});
  check_copy(GetParam(), {{20, 40}, {.tile = {8, 32}}, {16, 8}});
  check_copy(
      GetParam(),
      {{5, 6, 40}, {.tile = {2, 4, 32}, .swizzle = Swizzle::b128}, {1, 3, 8}});
  // Two panels of planes.
  check_copy(
      GetParam(),
      {{3, 8, 32}, {.tile = {2, 8, 16}, .swizzle = Swizzle::b32}, {1, 0, 16}});
  check_copy(GetParam(), {{2, 3, 4, 16}, {.tile = {2, 1, 3, 8}}, {0, 2, 1, 4}});
  check_copy(GetParam(), {{2, 3, 2, 4, 8},
                          {.tile = {1, 2, 2, 2, 8}, .swizzle = Swizzle::b32},
                          {1, 1, 0, 3, 0}});
  SKIP_WITHOUT_DEVICE();
}

TEST_P(TmaStore, EverySecondRow) {
  Copy copy{{20, 16}, {.tile = {4, 16}, .element_strides = {2, 1}}, {5, 0}};
  std::vector<At> origin(copy.origin.begin(), copy.origin.end());
  Kernel kernel = copy_tile({20, 16}, copy.options, origin);
  const TensorMapSpec &map = *kernel.contract.parameters[0].tensor_map;
  EXPECT_EQ(map.box, (std::vector<int>{16, 8}));
  EXPECT_EQ(map.element_strides, (std::vector<int>{1, 2}));
  SKIP_WITHOUT_DEVICE();
  check_copy(GetParam(), copy);
}

TEST_P(TmaStore, OptionsOfTheMap) {
  KernelBuilder kb("options", {.threads = 32});
  kb.tensor_map("a", f16, {4, 8, 8, 16},
                {.tile = {1, 2, 2, 16},
                 .swizzle = Swizzle::b32,
                 .l2 = L2Promotion::b256,
                 .oob = OobFill::nan,
                 .interleave = Interleave::b32});
  Kernel kernel = compile_checked(kb.module());
  const TensorMapSpec &map = *kernel.contract.parameters[0].tensor_map;
  EXPECT_EQ(map.interleave, Interleave::b32);
  EXPECT_EQ(map.l2, L2Promotion::b256);
  EXPECT_EQ(map.oob, OobFill::nan);
  EXPECT_EQ(map.dims, (std::vector<Dim>{16, 8, 8, 4}));
  EXPECT_EQ(map.strides_bytes, (std::vector<Dim>{32, 256, 2048}));
  EXPECT_EQ(map.box, (std::vector<int>{16, 2, 2, 1}));
}

TEST_P(TmaStore, ATileIsReadAndFilledAgain) {
  // Two stores of one tile: the second filling waits for the first reading.
  KernelBuilder kb("twice", {.threads = 32});
  TmaTensor out = kb.tensor_map("out", i32, {2, 32}, {.tile = {1, 32}});
  SharedTile tile = kb.shared(out.tile());
  for (int row : {0, 1}) {
    tile(0, thread_id()) = thread_id() + 100 * row;
    fence_async_shared();
    sync_threads();
    one_thread([&] {
      tma_store(out, {row, 0}, tile);
      tma_store_commit();
      tma_store_wait_read(0);
    });
    sync_threads();
  }
  Kernel kernel = compile_checked(kb.module());
  OPEN_OR_SKIP(device);
  std::vector<int> found(64, -1), expected;
  for (int i = 0; i < 64; ++i)
    expected.push_back(i % 32 + i / 32 * 100);
  run(device, kernel, found);
  EXPECT_EQ(found, expected);
}

TEST_P(TmaStore, Reductions) {
  struct Case {
    Reduction op;
    const char *ptx;
    unsigned (*combine)(unsigned there, unsigned given);
  };
  const Case cases[] = {
      {Reduction::add, ".add.", [](unsigned a, unsigned b) { return a + b; }},
      {Reduction::min, ".min.",
       [](unsigned a, unsigned b) { return a < b ? a : b; }},
      {Reduction::max, ".max.",
       [](unsigned a, unsigned b) { return a < b ? b : a; }},
      {Reduction::inc, ".inc.",
       [](unsigned a, unsigned b) { return a >= b ? 0 : a + 1; }},
      {Reduction::dec, ".dec.",
       [](unsigned a, unsigned b) { return a == 0 || a > b ? b : a - 1; }},
      {Reduction::bit_and, ".and.",
       [](unsigned a, unsigned b) { return a & b; }},
      {Reduction::bit_or, ".or.", [](unsigned a, unsigned b) { return a | b; }},
      {Reduction::bit_xor, ".xor.",
       [](unsigned a, unsigned b) { return a ^ b; }},
  };
  for (const Case &one : cases) {
    KernelBuilder kb("reduce", {.threads = 32});
    TmaTensor out = kb.tensor_map("out", u32, {6, 32}, {.tile = {4, 32}});
    SharedTile tile = kb.shared(out.tile());
    fill(tile, 32);
    store_and_wait([&] { tma_reduce_store(one.op, out, {3, 0}, tile); });
    Kernel kernel = compile_checked(kb.module());
    EXPECT_TRUE(kernel.contract.arguments[0].is_output);
    EXPECT_EQ(count(kernel.ptx, "cp.reduce.async.bulk.tensor.2d"), 1);
    EXPECT_EQ(count(kernel.ptx, one.ptx), 1);
    Device *device = conformance::open(GetParam()).device.get();
    if (!device)
      continue;
    std::vector<unsigned> data(6 * 32), expected;
    for (unsigned i = 0; i < data.size(); ++i)
      data[i] = (i * 37) % 120;
    expected = data;
    for (unsigned i = 96; i < 192; ++i)
      expected[i] = one.combine(data[i], i - 96 + 1);
    run(*device, kernel, data);
    EXPECT_EQ(data, expected) << one.ptx;
  }
  SKIP_WITHOUT_DEVICE();
}

TEST_P(TmaStore, ReducedFloats) {
  for (Type type : {f16, bf16, f32}) {
    KernelBuilder kb("reduce", {.threads = 32});
    TmaTensor out = kb.tensor_map("out", type, {2, 32}, {.tile = {2, 32}});
    SharedTile tile = kb.shared(out.tile());
    fill(tile, 32);
    store_and_wait(
        [&] { tma_reduce_store(Reduction::add, out, {0, 0}, tile); });
    Kernel kernel = compile_checked(kb.module());
    Device *device = conformance::open(GetParam()).device.get();
    if (!device)
      continue;
    std::vector<double> before, expected;
    for (int i = 0; i < 64; ++i) {
      before.push_back(2 * i);
      expected.push_back(3 * i + 1);
    }
    std::vector<std::uint8_t> data = elements(type, before);
    run(*device, kernel, data);
    EXPECT_EQ(values(type, data), expected) << name(type);
  }
  SKIP_WITHOUT_DEVICE();
}

TEST_P(TmaStore, PlainCopies) {
  // 256 bytes from element 8 on, to element 16 on.
  KernelBuilder kb("plain", {.threads = 32});
  Tensor in = kb.tensor("in", i32, {128}), out = kb.tensor("out", i32, {128});
  SharedTile tile = kb.shared({i32, 1, 64});
  Mbarrier full = kb.mbarriers(1)[0];
  one_thread([&] {
    full.init(1);
    fence_mbarrier_init();
    full.arrive_expect_tx(256);
    bulk_copy(tile, in, {8}, 256, full);
    full.wait(0);
    bulk_copy(out, {16}, tile, 256);
    tma_store_commit();
    tma_store_wait(0);
  });
  Kernel kernel = compile_checked(kb.module());
  EXPECT_EQ(count(kernel.ptx, "cp.async.bulk.shared::cluster.global"), 1);
  EXPECT_EQ(count(kernel.ptx, "cp.async.bulk.global.shared::cta"), 1);
  EXPECT_FALSE(kernel.contract.arguments[0].is_output);
  EXPECT_TRUE(kernel.contract.arguments[1].is_output);
  EXPECT_EQ(kernel.contract.arguments[0].alignment_bytes, 16);
  OPEN_OR_SKIP(device);
  std::vector<int> data(128), found(128, -1), expected(128, -1);
  std::iota(data.begin(), data.end(), 1);
  std::copy_n(data.begin() + 8, 64, expected.begin() + 16);
  run(device, kernel, data, found);
  EXPECT_EQ(found, expected);
}

TEST_P(TmaStore, PoliciesChangeNoBytes) {
  KernelBuilder kb("policies", {.threads = 128});
  TmaTensor x = kb.tensor_map("x", f32, {8, 32}, {.tile = {8, 32}});
  TmaTensor y = kb.tensor_map("y", f32, {8, 32}, {.tile = {8, 32}});
  SharedTile tile = kb.shared(x.tile());
  Mbarrier full = kb.mbarriers(1)[0];
  one_thread([&] { full.init(1); });
  fence_mbarrier_init();
  sync_threads();
  TmaTensor once = x.with_policy(l2_policy(L2Eviction::first));
  TmaTensor kept = y.with_policy(l2_policy(L2Eviction::last, 0.5));
  store_and_wait([&] {
    tma_prefetch_tile(once, {0, 0});
    full.arrive_expect_tx(x.tile_bytes());
    tma_load(tile, once, {0, 0}, full);
    full.wait(0);
    tma_store(kept, {0, 0}, tile);
  });
  Kernel kernel = compile_checked(kb.module());
  EXPECT_EQ(count(kernel.ptx, ".L2::cache_hint"), 3);
  OPEN_OR_SKIP(device);
  std::vector<float> in(256), out(256, -1);
  std::iota(in.begin(), in.end(), 0.f);
  EXPECT_TRUE(try_run(device, kernel, in, out).ok());
  EXPECT_EQ(out, in);
}

TEST_P(TmaStore, FencesOfEverySpace) {
  // Global memory that threads wrote and TMA reads back.
  KernelBuilder kb("fences", {.threads = 128});
  Tensor x = kb.tensor("x", f32, {8, 32});
  TmaTensor map = kb.tensor_map(x, {.tile = {8, 32}});
  Tensor y = kb.tensor("y", f32, {8, 32});
  SharedTile tile = kb.shared(map.tile());
  Mbarrier full = kb.mbarriers(1)[0];
  one_thread([&] { full.init(1); });
  fence_mbarrier_init();
  Value t = thread_id();
  for_range(t, 256, 128, [&](Value i) { x(i / 32, i % 32) = cast(i, f32); });
  fence_async_global();
  sync_threads();
  one_thread([&] {
    full.arrive_expect_tx(map.tile_bytes());
    tma_load(tile, map, {0, 0}, full);
  });
  full.wait(0);
  fence_async_cluster();
  fence_async();
  for_range(t, 256, 128,
            [&](Value i) { y(i / 32, i % 32) = tile(i / 32, i % 32); });
  Kernel kernel = compile_checked(kb.module());
  OPEN_OR_SKIP(device);
  std::vector<float> in(256, -1), out(256, -1), expected(256);
  std::iota(expected.begin(), expected.end(), 0.f);
  EXPECT_TRUE(try_run(device, kernel, in, out).ok());
  EXPECT_EQ(out, expected);
}
