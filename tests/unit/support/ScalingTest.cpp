// Scaling: what a factor is of, and where it lies.
#include "kiln/language/tensorcore/scaling.h"

#include "ErrorText.h"

#include <gtest/gtest.h>

#include <set>

using namespace kiln;

TEST(Scaling, NamesParseBack) {
  for (Scaling scaling : {Scaling::none, Scaling::tensor, Scaling::blocks,
                          Scaling::mx, Scaling::nv})
    EXPECT_EQ(parse_scaling(name(scaling)), scaling);
  EXPECT_EQ(
      errorText([] { parse_scaling("fp4"); }),
      "'fp4' is not a valid scaling; use one of none, tensor, blocks, mx, nv");
}

TEST(Scaling, Counts) {
  EXPECT_EQ(scale_count(Scaling::none, {true, 100, 100}), 0);
  for (bool is_a : {true, false})
    EXPECT_EQ(scale_count(Scaling::tensor, {is_a, 2147483647, 129}), 1);
  EXPECT_EQ(scale_count(Scaling::blocks, {true, 100, 129}), 200);
  EXPECT_EQ(scale_count(Scaling::blocks, {false, 129, 129}), 4);
  EXPECT_EQ(scale_count(Scaling::mx, {true, 129, 129}), 2 * 2 * 512);
  EXPECT_EQ(scale_count(Scaling::nv, {false, 128, 64}), 512);
}

TEST(Scaling, Places) {
  // [k blocks, rows] of A, [blocks of columns, k blocks] of B.
  EXPECT_EQ(scale_index(Scaling::blocks, {true, 100, 300}, 7, 130), 107);
  EXPECT_EQ(scale_index(Scaling::blocks, {false, 300, 300}, 130, 290), 5);
  // Byte 16 l + 4 i + j of a piece: row 32 i + l, block j.
  for (bool is_a : {true, false})
    EXPECT_EQ(scale_index(Scaling::tensor, {is_a, 300, 300}, 130, 290), 0);
  EXPECT_EQ(scale_index(Scaling::mx, {true, 256, 256}, 33, 70), 16 + 4 + 2);
  EXPECT_EQ(scale_index(Scaling::mx, {true, 256, 256}, 0, 128), 512);
  EXPECT_EQ(scale_index(Scaling::mx, {true, 256, 256}, 128, 0), 1024);
  EXPECT_EQ(scale_index(Scaling::nv, {true, 256, 256}, 0, 64), 512);
}

TEST(Scaling, EveryBlockHasAPlaceOfItsOwn) {
  for (Scaling scaling : {Scaling::mx, Scaling::nv}) {
    ScaledOperand operand{true, 256, 512};
    std::set<std::int64_t> places;
    int step = block_of(scaling).k;
    for (int row = 0; row < operand.rows; ++row)
      for (int k = 0; k < operand.k; k += step) {
        std::int64_t place = scale_index(scaling, operand, row, k);
        EXPECT_EQ(place, scale_index(scaling, operand, row, k + step - 1));
        EXPECT_TRUE(places.insert(place).second);
      }
    EXPECT_EQ(*places.rbegin() + 1, scale_count(scaling, operand));
  }
}
