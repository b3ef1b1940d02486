// layout_figure.h: layouts as tables and pictures, in both directions: where
// each element is, and what is in each place.
//
// `kiln layout` shows them:
//
//     kiln layout accumulator 64x16
//     kiln layout shared 8x64 f16 --swizzle 128 --svg tile.svg
#pragma once

#include <kiln/export.h>
#include <kiln/layout.h>
#include <kiln/memory.h>

#include <string>

namespace KILN_API kiln {

/// Two tables: "thread.register" by row and column, and "row,column" by thread
/// and register.
std::string layout_table(const RegisterLayout &layout);
/// Two tables of pieces of 16 bytes, which a swizzle moves as a whole: the byte
/// by row and column, and "row,column" by byte, 128 bytes to a line.
std::string layout_table(const TileLayout &layout);

/// The tile as it is seen, each element with its thread and register, threads
/// told apart by colour.
std::string layout_svg(const RegisterLayout &layout);
/// Shared memory as it lies, each piece of 16 bytes with its first element,
/// rows told apart by colour.
std::string layout_svg(const TileLayout &layout);

} // namespace kiln
