// layout_figure.h: layouts as tables and pictures, in both directions: where
// each element is, and what is in each place.
//
// `kiln layout` shows them:
//
//     kiln layout accumulator 64x16
//     kiln layout shared 8x64 f16 --swizzle 128 --svg tile.svg
//     kiln layout tensor-memory 64x32 f32
#pragma once

#include <kiln/base/export.h>
#include <kiln/language/tile/layout.h>
#include <kiln/language/memory/memory.h>

#include <string>

namespace KILN_API kiln {

/// A tile in the tensor memory of a CTA: 128 lanes of columns of 32 bits. A row
/// of 128 is a lane; of 64 rows each warp has 16, in the first of its 32 lanes.
struct TensorLayout {
  Type type = Type::f32; ///< of 32 bits, or of 16: two to a column
  int rows = 128, columns = 0;

  /// Throws UserError where there is no such tile.
  void check() const;
  int lane(int row) const {
    return rows == 128 ? row : row / 16 * 32 + row % 16;
  }
  /// Columns of 32 bits.
  int words() const { return columns * size_bytes(type) / 4; }
  /// "tensor-memory 64x32 f32: 128 lanes of 32 columns"
  std::string to_string() const;
};

/// Two tables: "thread.register" by row and column, and "row,column" by thread
/// and register.
std::string layout_table(const RegisterLayout &layout);
/// Two tables of pieces of 16 bytes, which a swizzle moves as a whole: the byte
/// by row and column, and "row,column" by byte, 128 bytes to a line.
std::string layout_table(const TileLayout &layout);
/// One table: the first element, "row,column", of each four columns, by the
/// lane and with the warp of a warpgroup that can load it.
std::string layout_table(const TensorLayout &layout);

/// The tile as it is seen, each element with its thread and register, threads
/// told apart by colour.
std::string layout_svg(const RegisterLayout &layout);
/// Shared memory as it lies, each piece of 16 bytes with its first element,
/// rows told apart by colour.
std::string layout_svg(const TileLayout &layout);
/// Lanes by columns, four columns to a cell, warps told apart by colour.
std::string layout_svg(const TensorLayout &layout);

} // namespace kiln
