// Views: parts and other shapes of tensors, shared tiles and register tiles.
#include "conformance/Conformance.h"

#include <kiln/run/run.h>

#include <numeric>

using namespace conformance;

class Views : public OnDevice {};
INSTANTIATE_ON_DEVICES(Views);

/// Runs `kernel` on 0, 1, 2 ... and compares the i32 it writes.
static void expectWritten(const std::string &id, const Kernel &kernel,
                          int count, const std::vector<double> &expected) {
  Device *device = conformance::open(id).device.get();
  if (!device)
    return;
  std::vector<double> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  std::vector<std::uint8_t> x = elements(i32, numbers);
  std::vector<std::uint8_t> y =
      elements(i32, std::vector<double>(expected.size(), -1));
  EXPECT_TRUE(try_run(*device, kernel, x, y).ok());
  EXPECT_EQ(values(i32, y), expected);
}

TEST_P(Views, TensorsOfFourDimensions) {
  // y[j][i] = x[2][i + 3][5][j]
  KernelBuilder kb("views", {.threads = 32});
  Tensor x = kb.tensor("x", i32, {4, 8, 6, 10});
  Tensor y = kb.tensor("y", i32, {10, 4});
  Tensor part = x.permute({2, 0, 3, 1}).index(0, 5).index(0, 2).slice(1, 3, 4);
  ASSERT_EQ(part.shape(), (std::vector<Dim>{10, 4}));
  if_(thread_id() < 10, [&] {
    for (int i = 0; i < 4; ++i)
      y(thread_id(), i) = part(thread_id(), i);
  });
  Kernel kernel = compile_checked(kb.module());
  std::vector<double> expected;
  for (int j = 0; j < 10; ++j)
    for (int i = 0; i < 4; ++i)
      expected.push_back(((2 * 8 + i + 3) * 6 + 5) * 10 + j);
  expectWritten(GetParam(), kernel, 4 * 8 * 6 * 10, expected);
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Views, TensorsReshaped) {
  KernelBuilder kb("reshaped", {.threads = 32});
  Tensor x = kb.tensor("x", i32, {4, 8, 6});
  Tensor y = kb.tensor("y", i32, {192});
  Tensor flat = x.slice(0, 1, 2).reshape({4, 24}).transpose();
  for_range(thread_id(), 24, 32, [&](Value i) {
    for (int j = 0; j < 4; ++j)
      y(i * 4 + j) = flat(i, j);
  });
  Kernel kernel = compile_checked(kb.module());
  std::vector<double> expected(192, -1);
  for (int i = 0; i < 24; ++i)
    for (int j = 0; j < 4; ++j)
      expected[4 * i + j] = 48 + 24 * j + i;
  expectWritten(GetParam(), kernel, 192, expected);
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Views, SlicesEndWhereTheTensorEnds) {
  // Blocks of 16x16 of a 21x37 tensor, by their runtime origin.
  KernelBuilder kb("blocks", {.threads = 32});
  Tensor x = kb.tensor("x", i32, {21, 37});
  Tensor y = kb.tensor("y", i32, {21, 37});
  kb.grid(3, 2);
  Value row = block_id(Axis::y) * 16, column = block_id() * 16;
  Tensor from = x.slice(0, row, 16, 16).slice(1, column, 16, 16);
  Tensor to = y.slice(0, row, 16, 16).slice(1, column, 16, 16);
  load_tile(RegisterLayout::strided(32, 32, 32), from, {0, 0})
      .store(to, {0, 0});
  Kernel kernel = compile_checked(kb.module());
  std::vector<double> expected(21 * 37);
  std::iota(expected.begin(), expected.end(), 0);
  expectWritten(GetParam(), kernel, 21 * 37, expected);
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Views, SharedSlicesKeepTheSwizzle) {
  for (Swizzle swizzle : {Swizzle::none, Swizzle::b64, Swizzle::b128}) {
    KernelBuilder kb("slices", {.threads = 32});
    Tensor x = kb.tensor("x", i32, {32, 64});
    Tensor y = kb.tensor("y", i32, {64, 32});
    SharedTile tile = kb.shared({i32, 32, 64, swizzle});
    copy(CopyScope::cta, tile, x);
    sync_threads();
    // Quarters, each transposed by itself; one has a runtime origin.
    Value eight = thread_id() / 32 + 8;
    for (int row : {0, 8, 16, 24})
      for (int column : {0, 32}) {
        SharedTile part =
            row == 8 ? tile.slice(eight, column, 8, 32)
                     : tile.slice(row, 0, 8, 64).slice(0, column, 8, 32);
        SharedTile turned = part.transpose().slice(0, 0, 32, 8);
        copy(CopyScope::cta, y.slice(0, column, 32).slice(1, row, 8), turned);
      }
    Kernel kernel = compile_checked(kb.module());
    std::vector<double> expected;
    for (int column = 0; column < 64; ++column)
      for (int row = 0; row < 32; ++row)
        expected.push_back(64 * row + column);
    expectWritten(GetParam(), kernel, 32 * 64, expected);
  }
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Views, SharedTilesReshaped) {
  KernelBuilder kb("reshaped", {.threads = 32});
  Tensor x = kb.tensor("x", i32, {8, 12});
  Tensor y = kb.tensor("y", i32, {4, 24});
  SharedTile tile = kb.shared({i32, 8, 12});
  copy(CopyScope::cta, tile, x);
  sync_threads();
  copy(CopyScope::cta, y, tile.reshape(4, 24));
  Kernel kernel = compile_checked(kb.module());
  std::vector<double> expected(96);
  std::iota(expected.begin(), expected.end(), 0);
  expectWritten(GetParam(), kernel, 96, expected);
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Views, RegisterTiles) {
  KernelBuilder kb("registers", {.threads = 128});
  Tensor x = kb.tensor("x", i32, {64, 32});
  Tensor y = kb.tensor("y", i32, {8, 64});
  Tensor z = kb.tensor("z", i32, {32, 16});
  RegisterTile tile = load_tile(RegisterLayout::accumulator(64, 32), x, {0, 0});
  RegisterTile part = tile.slice(0, 8, 64, 8).transpose();
  part.store(y, {0, 0});
  part.reshape(32, 16).store(z, {0, 0});
  Kernel kernel = compile_checked(kb.module());
  EXPECT_EQ(count(kernel.ptx, ".local"), 0);
  OPEN_OR_SKIP(device);
  std::vector<double> numbers(64 * 32), expected;
  std::iota(numbers.begin(), numbers.end(), 0);
  for (int column = 0; column < 8; ++column)
    for (int row = 0; row < 64; ++row)
      expected.push_back(32 * row + column + 8);
  std::vector<std::uint8_t> a = elements(i32, numbers);
  std::vector<std::uint8_t> b = poisoned(i32, 512), c = poisoned(i32, 512);
  EXPECT_TRUE(try_run(device, kernel, a, b, c).ok());
  EXPECT_EQ(values(i32, b), expected);
  EXPECT_EQ(values(i32, c), expected);
}
