// copy.h: move tiles between memory and registers with ordinary loads and
// stores.
//
// The threads of the scope take the elements together: consecutive threads
// consecutive vectors along a row, as long as alignment allows (16 bytes at
// best). No barrier is implied, before or after:
//
//     copy(CopyScope::cta, tile, x.slice(0, row, 64).slice(1, 0, 64));
//     sync_threads();
//
// TMA (tma.h) copies without registers.
#pragma once

#include <kiln/base/export.h>
#include <kiln/language/tile/register_tile.h>

namespace KILN_API kiln {

/// Which threads take part, all of them calling.
enum class CopyScope : std::uint8_t {
  thread, ///< every caller copies all
  warp,
  warpgroup,
  cta,
};

// Source and destination have one type and one shape. A tensor has two
// dimensions, `slice` and `index` make it so; beside a tile it may be smaller
// or larger, and counts from its first element on: what lies beyond its bounds
// reads as 0 and is not written.

void copy(CopyScope scope, const SharedTile &to, const Tensor &from,
          Where where = Where::current());
void copy(CopyScope scope, const Tensor &to, const SharedTile &from,
          Where where = Where::current());
void copy(CopyScope scope, const SharedTile &to, const SharedTile &from,
          Where where = Where::current());
/// Of constant shape.
void copy(CopyScope scope, const Tensor &to, const Tensor &from,
          Where where = Where::current());

// A register tile decides itself which thread has which element; its layout is
// of as many threads as the scope has.

void copy(CopyScope scope, RegisterTile &to, const SharedTile &from,
          Where where = Where::current());
void copy(CopyScope scope, RegisterTile &to, const Tensor &from,
          Where where = Where::current());
void copy(CopyScope scope, const SharedTile &to, const RegisterTile &from,
          Where where = Where::current());
void copy(CopyScope scope, const Tensor &to, const RegisterTile &from,
          Where where = Where::current());
/// Of the same layout.
void copy(CopyScope scope, RegisterTile &to, const RegisterTile &from,
          Where where = Where::current());

} // namespace kiln
