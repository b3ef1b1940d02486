// LayoutFigure: the tables and pictures of small layouts, whole.
#include "kiln/language/tile/layout_figure.h"
#include "unit/support/ErrorText.h"

#include <gmock/gmock.h>

using namespace kiln;
using testing::HasSubstr;

TEST(LayoutFigure, TableOfARegisterLayout) {
  EXPECT_EQ(layout_table(RegisterLayout::strided(4, 2, 4, 2)),
            "strided 2x4: threads 2:(0,2) 2:(1,0), registers 2:(0,1)\n"
            "\n"
            "who holds each element: thread.register by row and column\n"
            "       0    1    2    3\n"
            "  0  0.0  0.1  1.0  1.1\n"
            "  1  2.0  2.1  3.0  3.1\n"
            "\n"
            "what each thread holds: row,column by register\n"
            "thread      r0      r1\n"
            "     0     0,0     0,1\n"
            "     1     0,2     0,3\n"
            "     2     1,0     1,1\n"
            "     3     1,2     1,3\n");
}

TEST(LayoutFigure, CopiesNameTheFirst) {
  RegisterLayout rows("rows", 2, 1, {{4, 0, 0}, {2, 1, 0}}, {});
  EXPECT_THAT(layout_table(rows), HasSubstr("column, the first of 4 copies\n"));
}

TEST(LayoutFigure, TableOfASharedTile) {
  // The bit of 128 flips the bit of 16: from row 4 on.
  EXPECT_EQ(layout_table(TileLayout{f32, 8, 8, Swizzle::b32}),
            "shared 8x8 f32, swizzle 32: 256 bytes, aligned to 256\n"
            "\n"
            "where each element is: the byte of 4 neighbours by row and "
            "column\n"
            "       0    4\n"
            "  0    0   16\n"
            "  1   32   48\n"
            "  2   64   80\n"
            "  3   96  112\n"
            "  4  144  128\n"
            "  5  176  160\n"
            "  6  208  192\n"
            "  7  240  224\n"
            "\n"
            "what lies where: row,column of 4 neighbours by byte\n"
            "byte    +0   +16   +32   +48   +64   +80   +96  +112\n"
            "   0   0,0   0,4   1,0   1,4   2,0   2,4   3,0   3,4\n"
            " 128   4,4   4,0   5,4   5,0   6,4   6,0   7,4   7,0\n");
}

TEST(LayoutFigure, Pictures) {
  std::string registers = layout_svg(RegisterLayout::row_per_thread(4, 2));
  EXPECT_THAT(registers, testing::StartsWith("<svg xmlns="));
  EXPECT_THAT(registers, testing::EndsWith("</svg>\n"));
  for (const char *label : {"T0 r0", "T0 r1", "T3 r1"})
    EXPECT_THAT(registers, HasSubstr(std::string(">") + label + "</text>"));
  std::string shared = layout_svg(TileLayout{f16, 8, 64, Swizzle::b128});
  // Row 1 begins one piece to the right of where it would without a swizzle:
  // the second cell of the second line.
  EXPECT_THAT(shared, HasSubstr("<rect x=\"108\" y=\"58\" width=\"62\" "
                                "height=\"18\" fill=\"#ffe9c9\" "
                                "stroke=\"#777\"/>\n<text x=\"139\" y=\"70\" "
                                "text-anchor=\"middle\">1,0</text>"));
}

TEST(LayoutFigure, RefusesTilesThatAreNone) {
  EXPECT_THAT(errorText([] { layout_table(TileLayout{f16, 8, 3}); }),
              HasSubstr("TMA needs a multiple of 16"));
  EXPECT_THAT(errorText([] { layout_svg(TileLayout{f16, 0, 8}); }),
              HasSubstr("has no elements"));
}

TEST(LayoutFigure, TableOfTensorMemory) {
  // A warp's lanes are 32; of 64 rows it has 16.
  std::string half = layout_table(TensorLayout{f32, 64, 8});
  EXPECT_THAT(
      half, HasSubstr("tensor-memory 64x8 f32: 128 lanes of 8 columns\n\nwhat "
                      "lies where: row,column of the first element in 4 "
                      "columns, by lane, with the warp that can load it\n"
                      "lane  warp     0     4\n"
                      "   0     0   0,0   0,4\n"));
  EXPECT_THAT(half, HasSubstr("  15     0  15,0  15,4\n"
                              "  16     0     -     -\n"));
  EXPECT_THAT(half, HasSubstr("  31     0     -     -\n"
                              "  32     1  16,0  16,4\n"));
  // Two elements of 16 bits to a column.
  EXPECT_THAT(layout_table(TensorLayout{f16, 128, 16}),
              HasSubstr(" lane   warp      0      4\n"
                        "    0      0    0,0    0,8\n"));
}

TEST(LayoutFigure, PictureOfTensorMemory) {
  std::string svg = layout_svg(TensorLayout{f32, 128, 8});
  EXPECT_THAT(svg, HasSubstr("tensor-memory 128x8 f32"));
  EXPECT_THAT(svg, HasSubstr(">127,4</text>"));
}

TEST(LayoutFigure, TilesTensorMemoryDoesNotHold) {
  auto refused = [](const TensorLayout &layout) {
    return errorText([&] { layout_table(layout); });
  };
  EXPECT_EQ(refused({e4m3, 128, 8}),
            "tensor memory holds types of 32 and 16 bits, not e4m3");
  EXPECT_EQ(refused({f32, 96, 8}),
            "a tile of 96 rows in tensor memory; 64 or 128 are possible");
  EXPECT_EQ(
      refused({f32, 128, 1024}),
      "a tile of 1024 columns of f32 in tensor memory; its rows fill 1 to "
      "512 columns of 32 bits");
}
