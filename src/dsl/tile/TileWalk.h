// TileWalk: the elements of a register tile, as the calling thread meets them.
//
// Whoever moves a tile between registers and memory walks it here: rows first,
// so that a row is compared with the tensor's bounds once, then runs of
// neighbours that can go in one instruction.
#pragma once

#include "kiln/language/tile/layout.h"
#include "kiln/language/value/value.h"

#include <functional>
#include <span>

namespace kiln {

/// The digits of the calling thread's number, one for each thread mode.
std::vector<Value> threadDigits(const RegisterLayout &layout,
                                const Where &where);

class TileWalk {
public:
  /// Computes where the calling thread's first element lies: the Values of a
  /// walk belong to the region it was made in.
  TileWalk(const RegisterLayout &layout, const Where &where);

  /// The same walk for code of another line.
  TileWalk at(const Where &where) const {
    TileWalk walk = *this;
    walk.where_ = where;
    return walk;
  }

  /// Row and column of a register, relative to the tile.
  Value row(int reg) const;
  Value column(int reg) const;

  /// Neighbours in a row that consecutive registers hold, a power of two:
  /// register r with r % vector() == 0 begins them, in a column that is a
  /// multiple of vector().
  int vector() const { return vector_; }

  /// Call `body(row, registers)` for every row the thread holds elements of,
  /// with the registers that begin a vector in it.
  void forEachRow(const std::function<void(const Value &, std::span<const int>)>
                      &body) const;

private:
  const RegisterLayout &layout_;
  Where where_;
  int vector_;
  Value row_, column_; ///< of register 0
};

} // namespace kiln
