// RegisterLayout: the maps of the hardware, written here as formulas.
#include "kiln/language/tile/layout.h"
#include "unit/support/ErrorText.h"

#include <gmock/gmock.h>

#include <functional>
#include <set>

using namespace kiln;

/// `layout` is `formula(thread, register)` everywhere.
static void expectFormula(const RegisterLayout &layout, int threads,
                          int registers,
                          const std::function<TileElement(int, int)> &formula) {
  SCOPED_TRACE(layout.to_string());
  ASSERT_EQ(layout.threads(), threads);
  ASSERT_EQ(layout.registers(), registers);
  for (int t = 0; t < threads; ++t)
    for (int i = 0; i < registers; ++i)
      ASSERT_EQ(layout.element(t, i), formula(t, i))
          << "thread " << t << ", register " << i;
}

/// Every element has one holder, and it is found there.
static void expectOneHolderEach(const RegisterLayout &layout) {
  SCOPED_TRACE(layout.to_string());
  EXPECT_EQ(layout.copies(), 1);
  std::set<std::pair<int, int>> seen;
  for (int row = 0; row < layout.rows(); ++row)
    for (int column = 0; column < layout.columns(); ++column) {
      std::vector<RegisterPlace> places = layout.holders(row, column);
      ASSERT_EQ(places.size(), 1u) << row << ", " << column;
      ASSERT_EQ(layout.element(places[0].thread, places[0].reg),
                (TileElement{row, column}));
      seen.insert({places[0].thread, places[0].reg});
    }
  EXPECT_EQ(seen.size(), std::size_t(layout.rows()) * layout.columns());
}

TEST(RegisterLayout, AccumulatorOfWgmma) {
  for (int rows : {64, 128})
    for (int columns : {8, 16, 24, 128})
      expectFormula(RegisterLayout::accumulator(rows, columns), 128,
                    rows * columns / 128, [&](int t, int i) -> TileElement {
                      int block = i / (columns / 2), in = i % (columns / 2);
                      return {64 * block + 16 * (t / 32) + t % 32 / 4 +
                                  8 * (in / 2 % 2),
                              8 * (in / 4) + 2 * (t % 4) + in % 2};
                    });
}

TEST(RegisterLayout, OperandAOfWgmma) {
  expectFormula(RegisterLayout::wgmma_operand(f16, 64, 16), 128, 8,
                [](int t, int e) -> TileElement {
                  return {16 * (t / 32) + t % 32 / 4 + 8 * (e / 2 % 2),
                          2 * (t % 4) + e % 2 + 8 * (e / 4)};
                });
  for (Type type : {e4m3, e5m2, i8, u8})
    expectFormula(RegisterLayout::wgmma_operand(type, 64, 32), 128, 16,
                  [](int t, int e) -> TileElement {
                    return {16 * (t / 32) + t % 32 / 4 + 8 * (e / 4 % 2),
                            4 * (t % 4) + e % 4 + 16 * (e / 8)};
                  });
  expectFormula(RegisterLayout::wgmma_operand(tf32, 64, 8), 128, 4,
                [](int t, int e) -> TileElement {
                  return {16 * (t / 32) + t % 32 / 4 + 8 * (e % 2),
                          t % 4 + 4 * (e / 2)};
                });
  // Further instructions: along k first, then down.
  RegisterLayout many = RegisterLayout::wgmma_operand(bf16, 128, 32);
  EXPECT_EQ(many.element(0, 8), (TileElement{0, 16}));
  EXPECT_EQ(many.element(0, 16), (TileElement{64, 0}));
}

TEST(RegisterLayout, MmaOfOneWarp) {
  expectFormula(RegisterLayout::mma_accumulator(16, 8), 32, 4,
                [](int t, int i) -> TileElement {
                  return {t / 4 + 8 * (i / 2), 2 * (t % 4) + i % 2};
                });
  expectFormula(RegisterLayout::mma_operand_a(f16, 16, 16), 32, 8,
                [](int t, int i) -> TileElement {
                  return {t / 4 + 8 * (i / 2 % 2),
                          2 * (t % 4) + i % 2 + 8 * (i / 4)};
                });
  expectFormula(RegisterLayout::mma_operand_b(bf16, 16, 8), 32, 4,
                [](int t, int i) -> TileElement {
                  return {2 * (t % 4) + i % 2 + 8 * (i / 2), t / 4};
                });
  expectFormula(RegisterLayout::mma_operand_b(i8, 32, 8), 32, 8,
                [](int t, int i) -> TileElement {
                  return {4 * (t % 4) + i % 4 + 16 * (i / 4), t / 4};
                });
  expectFormula(RegisterLayout::mma_operand_a(tf32, 16, 8), 32, 4,
                [](int t, int i) -> TileElement {
                  return {t / 4 + 8 * (i % 2), t % 4 + 4 * (i / 2)};
                });
  RegisterLayout wide = RegisterLayout::mma_operand_b(f16, 32, 16);
  EXPECT_EQ(wide.element(0, 4), (TileElement{16, 0}));
  EXPECT_EQ(wide.element(0, 8), (TileElement{0, 8}));
}

TEST(RegisterLayout, RowPerThreadAndStrided) {
  expectFormula(RegisterLayout::row_per_thread(128, 6), 128, 6,
                [](int t, int i) -> TileElement { return {t, i}; });
  // Four vectors in a row: 32 threads take eight rows at a time.
  expectFormula(RegisterLayout::strided(32, 16, 16, 4), 32, 8,
                [](int t, int i) -> TileElement {
                  return {t / 4 + 8 * (i / 4), 4 * (t % 4) + i % 4};
                });
  // A row longer than the threads reach: along it first.
  expectFormula(RegisterLayout::strided(32, 2, 128, 2), 32, 8,
                [](int t, int i) -> TileElement {
                  return {i / 4, 64 * (i / 2 % 2) + 2 * t + i % 2};
                });
  // Twelve vectors in a row: four threads side by side, three times.
  expectFormula(RegisterLayout::strided(32, 8, 24, 2), 32, 6,
                [](int t, int i) -> TileElement {
                  return {t / 4, 8 * (i / 2) + 2 * (t % 4) + i % 2};
                });
  expectFormula(RegisterLayout::strided(1, 2, 3), 1, 6,
                [](int, int i) -> TileElement { return {i / 3, i % 3}; });
}

TEST(RegisterLayout, EveryElementHasOneHolder) {
  for (const RegisterLayout &layout :
       {RegisterLayout::accumulator(64, 24),
        RegisterLayout::wgmma_operand(f16, 64, 32),
        RegisterLayout::wgmma_operand(u8, 64, 32),
        RegisterLayout::mma_accumulator(32, 24),
        RegisterLayout::mma_operand_a(e4m3, 32, 64),
        RegisterLayout::mma_operand_b(tf32, 16, 24),
        RegisterLayout::row_per_thread(32, 5),
        RegisterLayout::strided(96, 9, 64, 2)})
    expectOneHolderEach(layout);
}

TEST(RegisterLayout, CopiesHaveSeveralHolders) {
  // One value per row, in each of the four lanes that share the row.
  RegisterLayout rows("rows", 8, 1, {{4, 0, 0}, {8, 1, 0}}, {});
  EXPECT_EQ(rows.copies(), 4);
  EXPECT_EQ(rows.registers(), 1);
  EXPECT_THAT(rows.holders(2, 0),
              testing::ElementsAre(RegisterPlace{8, 0}, RegisterPlace{9, 0},
                                   RegisterPlace{10, 0}, RegisterPlace{11, 0}));
}

TEST(RegisterLayout, EqualWhereEveryElementIsInTheSamePlace) {
  EXPECT_EQ(RegisterLayout::accumulator(128, 64),
            RegisterLayout::wgmma_operand(f16, 128, 64));
  EXPECT_NE(RegisterLayout::accumulator(64, 64),
            RegisterLayout::wgmma_operand(e4m3, 64, 64));
  EXPECT_EQ(RegisterLayout::mma_accumulator(16, 16),
            RegisterLayout::mma_operand_a(bf16, 16, 16));
  EXPECT_EQ(RegisterLayout::row_per_thread(32, 1),
            RegisterLayout::strided(32, 32, 1));
  EXPECT_NE(RegisterLayout::accumulator(64, 8),
            RegisterLayout::accumulator(64, 16));
}

TEST(RegisterLayout, SaysWhatItIs) {
  EXPECT_EQ(RegisterLayout::accumulator(64, 16).to_string(),
            "accumulator 64x16: threads 4:(0,2) 8:(1,0) 4:(16,0), registers "
            "2:(0,1) 2:(8,0) 2:(0,8)");
  EXPECT_EQ(RegisterLayout::row_per_thread(32, 1).to_string(),
            "row_per_thread 32x1: threads 32:(1,0), registers 1");
}

TEST(RegisterLayout, RefusesNonsense) {
  auto made = [](int rows, int columns, std::vector<LayoutMode> threads,
                 std::vector<LayoutMode> registers) {
    return errorText([&] {
      RegisterLayout("mine", rows, columns, std::move(threads),
                     std::move(registers));
    });
  };
  EXPECT_EQ(made(0, 4, {}, {}), "layout mine: a tile of 0x4 has no elements; "
                                "both sides are at least 1");
  EXPECT_EQ(made(4, 1, {{0, 1, 0}}, {}),
            "layout mine: the thread mode 0:(1,0) counts nothing or runs "
            "backwards; its extent is at least 1, its steps at least 0");
  EXPECT_EQ(made(4, 1, {}, {{4, -1, 0}}),
            "layout mine: the register mode 4:(-1,0) counts nothing or runs "
            "backwards; its extent is at least 1, its steps at least 0");
  EXPECT_EQ(made(2048, 1, {{2048, 1, 0}}, {}),
            "layout mine has 2048 or more threads; 1024 are the most");
  EXPECT_EQ(made(1, 4096, {}, {{4096, 0, 1}}),
            "layout mine has 4096 or more registers; 1024 are the most");
  EXPECT_EQ(made(3, 3, {{4, 1, 0}}, {}),
            "layout mine: 4 threads of 1 registers do not hold 3x3 elements "
            "equally often");
  EXPECT_EQ(made(4, 1, {{4, 2, 0}}, {}),
            "layout mine: register 0 of thread 2 is element (4, 0), outside "
            "the tile of 4x1");
  EXPECT_EQ(made(1, 4, {{2, 0, 1}}, {{2, 0, 0}}),
            "layout mine: thread 0 holds element (0, 0) twice");
  EXPECT_EQ(made(1, 4, {{2, 0, 1}}, {{2, 0, 1}}),
            "layout mine: 2 threads hold element (0, 1), and 1 hold an element "
            "on average");
}

TEST(RegisterLayout, RefusesShapesTheInstructionDoesNotHave) {
  EXPECT_EQ(errorText([] { RegisterLayout::accumulator(32, 8); }),
            "accumulator of 32 rows; it takes multiples of 64");
  EXPECT_EQ(errorText([] { RegisterLayout::accumulator(64, 12); }),
            "accumulator of 12 columns; it takes multiples of 8");
  EXPECT_EQ(errorText([] { RegisterLayout::wgmma_operand(f16, 64, 8); }),
            "wgmma_operand of 8 columns; it takes multiples of 16");
  EXPECT_EQ(errorText([] { RegisterLayout::wgmma_operand(f32, 64, 8); }),
            "wgmma_operand of f32; the tensor core takes f16, bf16, tf32, "
            "e4m3, e5m2, i8 and u8");
  EXPECT_EQ(errorText([] { RegisterLayout::mma_operand_b(i8, 16, 8); }),
            "mma_operand_b of 16 rows; it takes multiples of 32");
  EXPECT_EQ(errorText([] { RegisterLayout::strided(32, 8, 6, 4); }),
            "strided of 6 columns; it takes multiples of 4");
  EXPECT_EQ(errorText([] { RegisterLayout::strided(0, 8, 8, 0); }),
            "strided over 0 threads in vectors of 0; both are at least 1");
  EXPECT_EQ(errorText([] { RegisterLayout::strided(32, 6, 24, 2); }),
            "strided of 6 rows; it takes multiples of 8");
}
