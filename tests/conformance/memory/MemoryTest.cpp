// Memory: shared tiles of every swizzle, by element and by TMA.
#include "conformance/Conformance.h"

#include <kiln/run/run.h>

#include <cmath>
#include <numeric>

using namespace conformance;

class Memory : public OnDevice {};
INSTANTIATE_ON_DEVICES(Memory);

static constexpr Swizzle kSwizzles[] = {Swizzle::none, Swizzle::b32,
                                        Swizzle::b64, Swizzle::b128};

TEST_P(Memory, TilesOfEverySwizzleReadBackWhatWasWritten) {
  for (Swizzle swizzle : kSwizzles) {
    TileLayout layout{
        .type = i32, .rows = 16, .columns = 32, .swizzle = swizzle};
    KernelBuilder kb("tiles", {.threads = 128});
    Tensor out = kb.tensor("out", i32, {32, 16});
    SharedTile before = kb.shared(layout), tile = kb.shared(layout);
    // Neighbours must not be touched.
    for_range(thread_id(), 512, 128,
              [&](Value i) { before(i / 32, i % 32) = -1; });
    for_range(thread_id(), 512, 128,
              [&](Value i) { tile(i / 32, i % 32) = i; });
    sync_threads();
    for_range(thread_id(), 512, 128, [&](Value i) {
      Value row = i / 16, column = i % 16;
      out(row, column) =
          tile.transpose()(row, column) + before(column, row) + 1;
    });
    Kernel kernel = compile_checked(kb.module());
    Device *device = conformance::open(GetParam()).device.get();
    if (!device)
      continue;
    std::vector<int> found(512, -1), expected;
    for (int i = 0; i < 512; ++i)
      expected.push_back(i % 16 * 32 + i / 16);
    run(*device, kernel, found);
    EXPECT_EQ(found, expected) << static_cast<int>(swizzle);
  }
  SKIP_WITHOUT_DEVICE();
}

/// A kernel that loads a tile by TMA and writes it out by elements.
static Kernel tile_by_tma(Type type, Dim rows, Dim columns,
                          const TmaOptions &options) {
  KernelBuilder kb("load", {.threads = 128});
  TmaTensor in = kb.tensor_map("in", type, {rows, columns}, options);
  int tile_rows = in.tile().rows, tile_columns = in.tile().columns;
  Tensor out = kb.tensor("out", type, {tile_rows, tile_columns});
  Value row = kb.scalar("row", i32), column = kb.scalar("column", i32);
  SharedTile tile = kb.shared(in.tile());
  Mbarrier full = kb.mbarriers(1)[0];
  one_thread([&] {
    full.init(1);
    fence_mbarrier_init();
    full.arrive_expect_tx(in.tile_bytes());
    tma_load(tile, in, {row, column}, full);
  });
  sync_threads();
  full.wait(0);
  for_range(thread_id(), tile_rows * tile_columns, 128, [&](Value i) {
    Value r = i / tile_columns, c = i % tile_columns;
    out(r, c) = tile(r, c);
  });
  return compile_checked(kb.module());
}

TEST_P(Memory, TmaTilesOfEverySwizzle) {
  const int rows = 40, columns = 72, tile_rows = 16, tile_columns = 64;
  std::vector<std::uint16_t> in(rows * columns);
  std::iota(in.begin(), in.end(), 1);
  for (Swizzle swizzle : kSwizzles) {
    Kernel kernel =
        tile_by_tma(u16, rows, columns,
                    {.tile = {tile_rows, tile_columns}, .swizzle = swizzle});
    int width = swizzle == Swizzle::none ? 128 : static_cast<int>(swizzle);
    EXPECT_EQ(count(kernel.ptx, "cp.async.bulk.tensor.2d"), 128 / width);
    Device *device = conformance::open(GetParam()).device.get();
    if (!device)
      continue;
    // Inside, over each edge, and entirely outside.
    for (auto [row, column] :
         {std::pair{8, 0}, {7, 8}, {32, 48}, {-5, -16}, {0, 72}, {40, 0}}) {
      std::vector<std::uint16_t> found(tile_rows * tile_columns, 0xFFFF),
          expected;
      for (int r = row; r < row + tile_rows; ++r)
        for (int c = column; c < column + tile_columns; ++c)
          expected.push_back(r >= 0 && r < rows && c >= 0 && c < columns
                                 ? in[r * columns + c]
                                 : 0);
      run(*device, kernel, in, found, row, column);
      EXPECT_EQ(found, expected) << "swizzle " << static_cast<int>(swizzle)
                                 << " at " << row << ", " << column;
    }
  }
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Memory, TmaFillsWithNan) {
  Kernel kernel =
      tile_by_tma(f32, 4, 32, {.tile = {8, 32}, .oob = OobFill::nan});
  OPEN_OR_SKIP(device);
  std::vector<float> in(4 * 32, 1), found(8 * 32, 7);
  run(device, kernel, in, found, 0, 0);
  for (int i = 0; i < 8 * 32; ++i)
    EXPECT_EQ(std::isnan(found[i]), i >= 4 * 32) << i;
}

TEST_P(Memory, TmaOfOneDimensionWithRuntimeLength) {
  KernelBuilder kb("line", {.threads = 64});
  Dim n = kb.dim("n");
  TmaTensor in = kb.tensor_map("in", i32, {n}, {.tile = {64}});
  Tensor out = kb.tensor("out", i32, {64});
  SharedTile tile = kb.shared(in.tile());
  Mbarrier full = kb.mbarriers(1)[0];
  one_thread([&] {
    full.init(1);
    fence_mbarrier_init();
    full.arrive_expect_tx(in.tile_bytes());
    tma_load(tile, in, {32}, full);
  });
  sync_threads();
  full.wait(0);
  out(thread_id()) = tile(0, thread_id());
  Kernel kernel = compile_checked(kb.module());
  OPEN_OR_SKIP(device);
  for (int n : {50, 96, 1000}) {
    std::vector<int> in(n), found(64, -1), expected;
    std::iota(in.begin(), in.end(), 1);
    for (int i = 32; i < 96; ++i)
      expected.push_back(i < n ? in[i] : 0);
    run(device, kernel, n, in, found);
    EXPECT_EQ(found, expected) << n;
  }
}

TEST_P(Memory, TmaTilesOfAnArrayThatAreNoWholePattern) {
  // Four rows are half a pattern of the 128-byte swizzle: the second tile must
  // still be read as TMA wrote it.
  KernelBuilder kb("array", {.threads = 128});
  TmaTensor in = kb.tensor_map("in", i32, {8, 32},
                               {.tile = {4, 32}, .swizzle = Swizzle::b128});
  Tensor out = kb.tensor("out", i32, {8, 32});
  SharedTileArray tiles = kb.shared_array(in.tile(), 2);
  Mbarrier full = kb.mbarriers(1)[0];
  one_thread([&] {
    full.init(1);
    fence_mbarrier_init();
    full.arrive_expect_tx(2 * in.tile_bytes());
    for (int i : {0, 1})
      tma_load(tiles[i], in, {4 * i, 0}, full);
  });
  sync_threads();
  full.wait(0);
  for (int i : {0, 1})
    out(thread_id() / 32 + 4 * i, thread_id() % 32) =
        tiles[i](thread_id() / 32, thread_id() % 32);
  Kernel kernel = compile_checked(kb.module());
  OPEN_OR_SKIP(device);
  std::vector<int> data(256), found(256, -1);
  std::iota(data.begin(), data.end(), 1);
  run(device, kernel, data, found);
  EXPECT_EQ(found, data);
}

TEST_P(Memory, MbarrierOverTwoPhases) {
  // The same tile and barrier, filled twice.
  KernelBuilder kb("phases", {.threads = 32});
  TmaTensor in = kb.tensor_map("in", i32, {2, 32}, {.tile = {1, 32}});
  Tensor out = kb.tensor("out", i32, {2, 32});
  SharedTile tile = kb.shared(in.tile());
  Mbarrier full = kb.mbarriers(1)[0];
  one_thread([&] {
    full.init(1);
    fence_mbarrier_init();
  });
  sync_threads();
  for (int phase : {0, 1}) {
    one_thread([&] {
      full.arrive_expect_tx(in.tile_bytes());
      tma_load(tile, in, {phase, 0}, full);
    });
    full.wait(phase);
    out(phase, thread_id()) = tile(0, thread_id());
    fence_async_shared(); // read before TMA overwrites it
    sync_threads();
  }
  Kernel kernel = compile_checked(kb.module());
  OPEN_OR_SKIP(device);
  std::vector<int> data(64), found(64, -1);
  std::iota(data.begin(), data.end(), 5);
  run(device, kernel, data, found);
  EXPECT_EQ(found, data);
}
