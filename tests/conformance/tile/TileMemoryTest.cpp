// TileMemory: register tiles from and to tensors and shared tiles, whole and
// ragged, and copies between all of them.
#include "conformance/Conformance.h"

#include <kiln/run/run.h>

#include <numeric>

using namespace conformance;

class TileMemory : public OnDevice {};
INSTANTIATE_ON_DEVICES(TileMemory);

/// 1, 2, 3 ...: exact in every type there is.
static std::vector<double> counted(std::size_t count) {
  std::vector<double> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 1);
  for (double &number : numbers)
    number = std::fmod(number, 61);
  return numbers;
}

namespace {
/// A matrix on the host.
struct Matrix {
  int rows, columns;
  std::vector<double> values;

  double at(int row, int column, double outside) const {
    bool isInside = row < rows && column < columns;
    return isInside ? values[row * columns + column] : outside;
  }
};
} // namespace

/// Reads a tile of x at (row, column) by one layout, writes it to y at (0, 0)
/// by way of shared memory with another.
static Kernel throughShared(const RegisterLayout &in, const RegisterLayout &out,
                            Type type, const Matrix &x, int row, int column) {
  KernelBuilder kb("through", {.threads = 128});
  Tensor from = kb.tensor("x", type, {x.rows, x.columns});
  Tensor to = kb.tensor("y", type, {in.rows(), in.columns()});
  SharedTile tile = kb.shared(TileLayout::of(type, in.rows(), in.columns()));
  load_tile(in, from, {row, column}, {.fill = 7}).store(tile);
  sync_threads();
  load_tile(out, tile).store(to, {0, 0}, {.is_inside = true});
  return compile_checked(kb.module());
}

TEST_P(TileMemory, RaggedTilesThroughSharedMemory) {
  const Matrix matrices[] = {{64, 64, counted(64 * 64)},
                             {50, 36, counted(50 * 36)},
                             {41, 33, counted(41 * 33)}};
  const std::pair<RegisterLayout, RegisterLayout> layouts[] = {
      {RegisterLayout::strided(128, 64, 32, 4),
       RegisterLayout::accumulator(64, 32)},
      {RegisterLayout::accumulator(64, 32),
       RegisterLayout::strided(128, 64, 32, 2)}};
  for (Type type : {f32, f16, u8})
    for (const Matrix &x : matrices)
      for (const auto &[in, out] : layouts) {
        SCOPED_TRACE(in.name() + ", " + std::string(name(type)) + ", " +
                     std::to_string(x.rows));
        Kernel kernel = throughShared(in, out, type, x, 8, 4);
        const OpenedDevice &opened = conformance::open(GetParam());
        if (!opened.device)
          continue;
        std::vector<double> expected;
        for (int row = 0; row < 64; ++row)
          for (int column = 0; column < 32; ++column)
            expected.push_back(x.at(row + 8, column + 4, 7));
        std::vector<std::uint8_t> a = elements(type, x.values);
        std::vector<std::uint8_t> y = poisoned(type, expected.size());
        EXPECT_TRUE(try_run(*opened.device, kernel, a, y).ok());
        EXPECT_EQ(values(type, y), expected);
      }
  SKIP_WITHOUT_DEVICE();
}

TEST_P(TileMemory, VectorsWhereAlignmentAllows) {
  auto ptx = [](Dim columns, int column, Type type = f32) {
    KernelBuilder kb("vectors", {.threads = 32});
    Tensor x = kb.tensor("x", type, {64, columns});
    Tensor y = kb.tensor("y", type, {64, columns});
    load_tile(RegisterLayout::strided(32, 32, 16, 16 / size_bytes(type)), x,
              {0, column})
        .store(y, {0, column});
    return compile_checked(kb.module()).ptx;
  };
  EXPECT_EQ(count(ptx(64, 16, f16), "ld.global.v4.b32"), 2);
  EXPECT_EQ(count(ptx(64, 16, f16), "st.global.v4.b32"), 2);
  EXPECT_EQ(count(ptx(64, 16, i8), "ld.global.v4.b32"), 1);
  EXPECT_EQ(count(ptx(64, 16), "ld.global.v4.b32"), 4);
  EXPECT_EQ(count(ptx(64, 16), "st.global.v4.b32"), 4);
  EXPECT_EQ(count(ptx(64, 2), "ld.global.v2.b32"), 8);
  EXPECT_EQ(count(ptx(63, 16), "ld.global.b32"), 16);
  EXPECT_EQ(count(ptx(63, 16), "ld.global.v"), 0);
}

/// Runs `kernel` on x and compares what it writes.
static void expectWritten(const std::string &id, const Kernel &kernel,
                          Type type, const std::vector<double> &x,
                          const std::vector<double> &expected) {
  Device *device = conformance::open(id).device.get();
  if (!device)
    return;
  std::vector<std::uint8_t> a = elements(type, x);
  std::vector<std::uint8_t> y =
      elements(type, std::vector<double>(expected.size(), 99));
  EXPECT_TRUE(try_run(*device, kernel, a, y).ok());
  EXPECT_EQ(values(type, y), expected);
}

TEST_P(TileMemory, StoresLeaveOutWhatLiesOutside) {
  KernelBuilder kb("ragged", {.threads = 128});
  Dim m = 40, n = 20;
  Tensor x = kb.tensor("x", f32, {64, 16});
  Tensor y = kb.tensor("y", f32, {m, n});
  load_tile(RegisterLayout::accumulator(64, 16), x, {0, 0}).store(y, {8, 10});
  Kernel kernel = compile_checked(kb.module());
  std::vector<double> numbers = counted(64 * 16), expected(40 * 20, 99);
  for (int row = 8; row < 40; ++row)
    for (int column = 10; column < 20; ++column)
      expected[20 * row + column] = numbers[16 * (row - 8) + column - 10];
  expectWritten(GetParam(), kernel, f32, numbers, expected);
  SKIP_WITHOUT_DEVICE();
}

TEST_P(TileMemory, ColumnMajorMemory) {
  KernelBuilder kb("columns", {.threads = 32});
  Tensor x = kb.tensor("x", f32, {8, 16});
  Tensor y = kb.tensor("y", f32, {8, 16}, {1, 8});
  SharedTile tile = kb.shared(TileLayout::of(f32, 16, 8));
  RegisterTile rows = load_tile(RegisterLayout::strided(32, 8, 16), x, {0, 0});
  rows.store(tile.transpose());
  sync_threads();
  // Threads hold columns, whose elements are neighbours in both memories.
  RegisterLayout down = RegisterLayout::strided(32, 16, 8, 4).transpose();
  load_tile(down, tile.transpose()).store(y, {0, 0});
  Kernel kernel = compile_checked(kb.module());
  EXPECT_EQ(count(kernel.ptx, "ld.shared.v4.b32"), 1);
  EXPECT_EQ(count(kernel.ptx, "st.global.v4.b32"), 1);
  std::vector<double> numbers = counted(128), expected(128);
  for (int row = 0; row < 8; ++row)
    for (int column = 0; column < 16; ++column)
      expected[8 * column + row] = numbers[16 * row + column];
  expectWritten(GetParam(), kernel, f32, numbers, expected);
  SKIP_WITHOUT_DEVICE();
}

TEST_P(TileMemory, CopiesThroughEveryMemory) {
  for (CopyScope scope : {CopyScope::thread, CopyScope::warp,
                          CopyScope::warpgroup, CopyScope::cta})
    for (Type type : {f32, f16, i8})
      for (auto [rows, columns] : {std::pair{16, 32}, {30, 48}, {9, 16}}) {
        SCOPED_TRACE(std::to_string(rows) + " " + std::string(name(type)));
        int threads = scope == CopyScope::thread      ? 1
                      : scope == CopyScope::warp      ? 32
                      : scope == CopyScope::warpgroup ? 128
                                                      : 96;
        KernelBuilder kb("copies", {.threads = threads});
        Tensor x = kb.tensor("x", type, {rows - 2, columns});
        Tensor y = kb.tensor("y", type, {rows, columns});
        SharedTile first = kb.shared({type, rows, columns});
        SharedTile second = kb.shared(TileLayout::of(type, rows, columns));
        copy(scope, first, x);
        sync_threads();
        copy(scope, second, first);
        sync_threads();
        copy(scope, y, second);
        Kernel kernel = compile_checked(kb.module());
        std::vector<double> numbers = counted((rows - 2) * columns);
        std::vector<double> expected = numbers;
        expected.resize(rows * columns, 0);
        expectWritten(GetParam(), kernel, type, numbers, expected);
      }
  SKIP_WITHOUT_DEVICE();
}

TEST_P(TileMemory, CopiesOfRowsThatBeginAnywhere) {
  // Rows an odd number of elements apart, and ends inside and behind the tile.
  struct Case {
    Type type;
    int rows, columns, stride, row, column;
  };
  for (const Case &c :
       {Case{f16, 40, 97, 97, 0, 0}, Case{f16, 40, 97, 97, 8, 33},
        Case{f16, 70, 64, 65, 3, 0}, Case{bf16, 9, 63, 63, 0, 0},
        Case{bf16, 33, 101, 101, 1, 64}, Case{f16, 32, 66, 66, 0, 2},
        Case{u8, 35, 131, 131, 2, 1}, Case{u8, 40, 129, 133, 0, 3},
        Case{f16, 1, 1, 1, 0, 0}, Case{u8, 40, 1, 1, 0, 0},
        Case{u8, 7, 2, 3, 0, 0}}) {
    constexpr int kRows = 32;
    int width = 128 / size_bytes(c.type);
    KernelBuilder kb("anywhere", {.threads = 128});
    Tensor x = kb.tensor("x", c.type, {c.rows, c.columns}, {c.stride, 1});
    Tensor y = kb.tensor("y", c.type, {kRows, width});
    SharedTile tile = kb.shared(TileLayout::of(c.type, kRows, width));
    copy(CopyScope::warpgroup, tile,
         x.slice(0, constant(i32, c.row), kRows)
             .slice(1, constant(i32, c.column), width));
    sync_threads();
    copy(CopyScope::cta, y, tile);
    Kernel kernel = compile_checked(kb.module());
    bool has_words = c.stride * size_bytes(c.type) >= 4;
    EXPECT_EQ(count(kernel.ptx, "shf.r.wrap.b32") > 0, has_words);
    std::vector<double> numbers = counted(c.rows * c.stride);
    std::vector<double> expected;
    for (int i = c.row; i < c.row + kRows; ++i)
      for (int j = c.column; j < c.column + width; ++j)
        expected.push_back(
            i < c.rows && j < c.columns ? numbers[i * c.stride + j] : 0);
    expectWritten(GetParam(), kernel, c.type, numbers, expected);
  }
  SKIP_WITHOUT_DEVICE();
}

TEST_P(TileMemory, CopiesAreLoadsAndStores) {
  KernelBuilder kb("form", {.threads = 128});
  Tensor x = kb.tensor("x", f16, {64, 64});
  SharedTile tile = kb.shared(TileLayout::of(f16, 64, 64));
  copy(CopyScope::warpgroup, tile, x);
  std::string ptx = compile_checked(kb.module()).ptx;
  // 8 KiB by 128 threads: four times 16 bytes each.
  EXPECT_EQ(count(ptx, "ld.global.v4.b32"), 4);
  EXPECT_EQ(count(ptx, "st.shared.v4.b32"), 4);
  EXPECT_EQ(count(ptx, "bar."), 0);
}

TEST_P(TileMemory, CopiesOfRegisterTilesAndTensors) {
  KernelBuilder kb("copies", {.threads = 32});
  Tensor x = kb.tensor("x", f32, {20, 40});
  Tensor y = kb.tensor("y", f32, {20, 40});
  SharedTile tile = kb.shared(TileLayout::of(f32, 8, 32));
  RegisterTile a(f32, RegisterLayout::strided(32, 8, 32, 4));
  RegisterTile b(f32, a.layout());
  Tensor from = x.slice(0, 4, 8).slice(1, 8, 32);
  copy(CopyScope::warp, a, from);
  copy(CopyScope::warp, b, a);
  copy(CopyScope::warp, tile, b);
  warp_sync();
  copy(CopyScope::warp, a, tile);
  copy(CopyScope::warp, y.slice(0, 4, 8).slice(1, 8, 32), a);
  copy(CopyScope::warp, y.slice(0, 12, 8), x.slice(0, 12, 8));
  Kernel kernel = compile_checked(kb.module());
  std::vector<double> numbers = counted(800), expected(800, 99);
  for (int row = 4; row < 20; ++row)
    for (int column = 0; column < 40; ++column)
      if (row >= 12 || column >= 8)
        expected[40 * row + column] = numbers[40 * row + column];
  expectWritten(GetParam(), kernel, f32, numbers, expected);
  SKIP_WITHOUT_DEVICE();
}
