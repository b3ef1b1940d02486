// RegisterViews: what is seen in another way stays in its register.
#include "kiln/language/tile/layout.h"
#include "unit/support/ErrorText.h"

#include <gmock/gmock.h>

#include <functional>

using namespace kiln;

/// Every register of `view` holds the element `place` says of the one in
/// `layout`.
static void
expectSameRegisters(const RegisterLayout &view, const RegisterLayout &layout,
                    const std::function<TileElement(TileElement)> &place) {
  SCOPED_TRACE(view.to_string());
  ASSERT_EQ(view.threads(), layout.threads());
  ASSERT_EQ(view.registers(), layout.registers());
  for (int t = 0; t < view.threads(); ++t)
    for (int i = 0; i < view.registers(); ++i)
      ASSERT_EQ(view.element(t, i), place(layout.element(t, i)));
}

TEST(RegisterViews, Transpose) {
  RegisterLayout layout = RegisterLayout::accumulator(64, 24);
  expectSameRegisters(layout.transpose(), layout, [](TileElement at) {
    return TileElement{at.column, at.row};
  });
  EXPECT_EQ(layout.transpose().transpose(), layout);
  EXPECT_EQ(layout.transpose().name(), "accumulator transposed");
}

TEST(RegisterViews, Reshape) {
  RegisterLayout layout = RegisterLayout::strided(32, 8, 64, 4);
  for (int columns : {8, 16, 32, 128, 512}) {
    int rows = 512 / columns;
    expectSameRegisters(layout.reshape(rows, columns), layout,
                        [&](TileElement at) {
                          int index = 64 * at.row + at.column;
                          return TileElement{index / columns, index % columns};
                        });
  }
  EXPECT_EQ(layout.reshape(16, 32).reshape(8, 64), layout);
}

TEST(RegisterViews, ReshapeRefuses) {
  RegisterLayout layout = RegisterLayout::row_per_thread(32, 6);
  EXPECT_EQ(errorText([&] { layout.reshape(32, 5); }),
            "a tile of 32x6 cannot be seen as one of 32x5: the number of "
            "elements differs");
  EXPECT_EQ(errorText([&] { layout.reshape(48, 4); }),
            "row_per_thread 32x6: threads 32:(1,0), registers 6:(0,1) cannot "
            "be seen as a tile of 48x4: its pieces cross the ends of the new "
            "rows");
}

TEST(RegisterViews, Slice) {
  RegisterLayout layout = RegisterLayout::accumulator(128, 64);
  EXPECT_EQ(layout.slice(64, 0, 64, 64).layout,
            RegisterLayout::accumulator(64, 64));
  RegisterSlice middle = layout.slice(0, 16, 64, 8);
  EXPECT_EQ(middle.layout, RegisterLayout::accumulator(64, 8));
  EXPECT_THAT(middle.registers, testing::ElementsAre(8, 9, 10, 11));
  // What the slice calls (r, c) is (r, c + 16) of the whole.
  for (int t = 0; t < 128; ++t)
    for (int i = 0; i < 4; ++i) {
      TileElement part = middle.layout.element(t, i);
      EXPECT_EQ(layout.element(t, middle.registers[i]),
                (TileElement{part.row, part.column + 16}));
    }
}

TEST(RegisterViews, SliceRefuses) {
  RegisterLayout layout = RegisterLayout::accumulator(64, 16);
  EXPECT_EQ(errorText([&] { layout.slice(0, 8, 64, 16); }),
            "a slice of 64x16 from (0, 8) leaves its tile of 64x16");
  for (auto [row, rows, column, columns] :
       {std::array{0, 32, 0, 16}, std::array{0, 64, 0, 4}})
    EXPECT_THAT(errorText([&] { layout.slice(row, column, rows, columns); }),
                testing::HasSubstr(
                    "cuts through registers of accumulator 64x16: threads "
                    "4:(0,2) 8:(1,0) 4:(16,0), registers 2:(0,1) 2:(8,0) "
                    "2:(0,8): every thread must hold a part of it, in the same "
                    "registers"));
}

TEST(RegisterViews, PerRow) {
  RegisterLayout layout = RegisterLayout::accumulator(128, 32);
  RegisterLayout rows = layout.per_row();
  EXPECT_EQ(rows.rows(), 128);
  EXPECT_EQ(rows.columns(), 1);
  EXPECT_EQ(rows.registers(), 4);
  EXPECT_EQ(rows.copies(), 4);
  std::vector<int> registers = rows.registers_for(layout);
  ASSERT_EQ(registers.size(), 32u);
  for (int t = 0; t < 128; ++t)
    for (int i = 0; i < 32; ++i)
      EXPECT_EQ(rows.element(t, registers[i]).row, layout.element(t, i).row);
}

TEST(RegisterViews, RegistersForAnotherLayout) {
  RegisterLayout layout = RegisterLayout::accumulator(64, 16);
  EXPECT_THAT(layout.registers_for(layout),
              testing::ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  // One value for the whole tile.
  RegisterLayout one("one", 1, 1, {{128, 0, 0}}, {});
  EXPECT_THAT(one.registers_for(layout), testing::Each(0));
  // Other threads, another shape, elements other threads hold.
  EXPECT_TRUE(
      RegisterLayout::row_per_thread(64, 1).registers_for(layout).empty());
  EXPECT_TRUE(
      RegisterLayout::accumulator(128, 16).registers_for(layout).empty());
  EXPECT_TRUE(
      RegisterLayout::strided(128, 64, 16).registers_for(layout).empty());
}
