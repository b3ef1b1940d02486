// Fragment: which elements of a tile a thread holds after a wgmma.
//
// The registers of m64nN (PTX, "Register Fragments and Shared Memory Matrix
// Layouts"): a thread holds pairs of neighbouring columns, eight columns apart,
// in two rows eight apart; further 64 rows repeat that. Whoever writes an
// accumulator anywhere walks it here.
#pragma once

#include "kiln/threads.h"
#include "kiln/value.h"

namespace kiln {

class Fragment {
public:
  static constexpr int kRows = 64;

  /// The fragment of a `rows` x `columns` tile in the calling thread.
  Fragment(int rows, int columns, const std::source_location &where)
      : rows_(rows), columns_(columns), where_(where) {
    Value thread = warpgroup_thread_id(where);
    row_ = ((thread >> At(5, where)) * At(16, where)) +
           At((thread & At(31, where)) >> At(2, where), where);
    column_ = (thread & At(3, where)) * At(2, where);
  }

  /// Row and column of a register, relative to the tile.
  Value row(int index) const {
    int perBlock = columns_ / 2;
    return row_ + At(index / perBlock * kRows + index / 2 % 2 * 8, where_);
  }
  Value column(int index) const {
    return pairColumn(index % (columns_ / 2)) + At(index % 2, where_);
  }

  /// Call `body(row, first register of that row)` for every row.
  template <typename Body> void forEachRow(Body &&body) const {
    for (int block = 0; block < rows_ / kRows; ++block)
      for (int half : {0, 1}) {
        int first = block * columns_ / 2 + half * 2;
        body(row(first), first);
      }
  }

  /// Call `body(column, register)` for every pair of the row that begins with
  /// register `first`; the pair is `register` and the one after it.
  template <typename Body> void forEachPair(int first, Body &&body) const {
    for (int group = 0; group < columns_ / 8; ++group)
      body(pairColumn(group * 4), first + group * 4);
  }

private:
  /// The left column of the pair a register of the first 64 rows is in.
  Value pairColumn(int index) const {
    return column_ + At(index / 4 * 8, where_);
  }

  int rows_, columns_;
  std::source_location where_;
  Value row_, column_;
};

} // namespace kiln
