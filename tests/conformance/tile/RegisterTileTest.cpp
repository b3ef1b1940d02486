// RegisterTile: a tile lies where its layout says, and is a variable.
#include "conformance/Conformance.h"

#include <kiln/run/run.h>

using namespace conformance;

class Tiles : public OnDevice {};
INSTANTIATE_ON_DEVICES(Tiles);

/// Writes to y, of the layout's shape, 1000 * row + column by way of a tile
/// that a loop and a branch change.
static Kernel positions(const RegisterLayout &layout, int threads) {
  KernelBuilder kb("positions", {.threads = threads});
  Tensor y = kb.tensor("y", i32, {layout.rows(), layout.columns()});
  RegisterTile tile(i32, layout, 0);
  for_range(0, 10, [&](Value) {
    RegisterTile next(i32, layout);
    for (int i = 0; i < tile.registers(); ++i)
      next.set(i, tile.element(i) + tile.row(i) * 100);
    tile = next;
  });
  if_(thread_id() >= 0, [&] {
    RegisterTile copied = tile;
    for (int i = 0; i < tile.registers(); ++i)
      tile.set(i, tile.element(i) + tile.column(i));
    for (int i = 0; i < tile.registers(); ++i)
      y(tile.row(i), tile.column(i)) = max(tile.element(i), copied.element(i));
  });
  Kernel kernel = compile_checked(kb.module());
  EXPECT_EQ(count(kernel.ptx, ".local"), 0);
  return kernel;
}

TEST_P(Tiles, LieWhereTheLayoutSays) {
  const std::pair<RegisterLayout, int> cases[] = {
      {RegisterLayout::accumulator(64, 16), 128},
      {RegisterLayout::wgmma_operand(e4m3, 64, 32), 128},
      {RegisterLayout::mma_accumulator(16, 8), 32},
      {RegisterLayout::mma_operand_b(f16, 16, 8), 32},
      {RegisterLayout::row_per_thread(96, 3), 96},
      {RegisterLayout::strided(96, 12, 48, 2), 96}};
  for (const auto &[layout, threads] : cases) {
    SCOPED_TRACE(layout.to_string());
    Kernel kernel = positions(layout, threads);
    const OpenedDevice &opened = conformance::open(GetParam());
    if (!opened.device)
      continue;
    std::vector<double> expected;
    for (int row = 0; row < layout.rows(); ++row)
      for (int column = 0; column < layout.columns(); ++column)
        expected.push_back(1000 * row + column);
    std::vector<std::uint8_t> out = poisoned(i32, expected.size());
    EXPECT_TRUE(try_run(*opened.device, kernel, out).ok());
    EXPECT_EQ(values(i32, out), expected);
  }
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Tiles, FromOneValuePerRegister) {
  KernelBuilder kb("values", {.threads = 32});
  Tensor y = kb.tensor("y", f32, {32, 2});
  RegisterTile tile(RegisterLayout::row_per_thread(32, 2),
                    {cast(thread_id(), f32), constant(f32, 7)});
  std::vector<Value> held = tile.values();
  for (int i = 0; i < 2; ++i)
    y(tile.row(i), tile.column(i)) = held[1 - i];
  Kernel kernel = compile_checked(kb.module());
  OPEN_OR_SKIP(device);
  std::vector<std::uint8_t> out = poisoned(f32, 64);
  EXPECT_TRUE(try_run(device, kernel, out).ok());
  std::vector<double> found = values(f32, out);
  for (int row = 0; row < 32; ++row) {
    EXPECT_EQ(found[2 * row], 7);
    EXPECT_EQ(found[2 * row + 1], row);
  }
}
