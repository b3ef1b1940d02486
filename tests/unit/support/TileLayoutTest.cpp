// TileLayout: the swizzle a tile gets where nobody chose one.
#include "kiln/language/memory/memory.h"

#include <gtest/gtest.h>

using namespace kiln;

TEST(TileLayout, DefaultSwizzleIsTheWidestThatFits) {
  EXPECT_EQ(default_swizzle(f16, 64), Swizzle::b128);
  EXPECT_EQ(default_swizzle(f16, 192), Swizzle::b128);
  EXPECT_EQ(default_swizzle(f16, 32), Swizzle::b64);
  EXPECT_EQ(default_swizzle(f16, 16), Swizzle::b32);
  EXPECT_EQ(default_swizzle(f16, 8), Swizzle::none);
  EXPECT_EQ(default_swizzle(f32, 48), Swizzle::b64);
  EXPECT_EQ(default_swizzle(u8, 20), Swizzle::none);
  EXPECT_EQ(default_swizzle(u8, 0), Swizzle::none);
}

TEST(TileLayout, OfShapeAndTypePassesItsOwnCheck) {
  for (Type type : {u8, f16, f32, f64})
    for (int rows : {1, 4, 8, 64})
      for (int columns : {16, 32, 64, 128})
        EXPECT_NO_THROW(TileLayout::of(type, rows, columns).check({}))
            << rows << "x" << columns << " " << name(type);
  EXPECT_EQ(TileLayout::of(f16, 64, 128).swizzle, Swizzle::b128);
  // Two panels of four rows would not begin a pattern each.
  EXPECT_EQ(TileLayout::of(f16, 4, 128).swizzle, Swizzle::none);
}

// Two elements of e2m1 share a byte; e2m3 takes a byte each, with gaps.
TEST(TileLayout, OfNarrowElements) {
  TileLayout four = TileLayout::of(e2m1, 128, 512);
  EXPECT_EQ(four.swizzle, Swizzle::b128);
  EXPECT_EQ(four.panel_columns(), 256);
  EXPECT_EQ(four.row_bytes(), 128);
  EXPECT_EQ(four.bytes(), 128 * 256);
  EXPECT_EQ(four.offset_bytes(0, 32), 16);
  EXPECT_EQ(four.offset_bytes(1, 32), 128);
  EXPECT_EQ(four.offset_bytes(0, 256), 128 * 128);
  TileLayout six = TileLayout::of(e2m3, 8, 128);
  EXPECT_EQ(six.swizzle, Swizzle::b128);
  EXPECT_EQ(six.bytes(), 8 * 128);
  EXPECT_EQ(default_swizzle(e2m1, 64), Swizzle::b32);
}
