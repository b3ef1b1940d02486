// copy_async: who copies which piece.
#include "copy_async.h"

#include <kiln/language/memory/async_copy.h>
#include <kiln/language/threads/threads.h>
#include <kiln/language/value/control.h>
#include <kiln/language/value/math.h>

#include <numeric>
#include <optional>

namespace kiln::gemm_kernel {

/// Whether tiles of so many elements along a side end where it does.
static bool covers(const Dim &extent, int tile) {
  return extent.is_constant() && extent.constant() % tile == 0;
}

// Threads side by side take neighbouring pieces of a row, which they find in
// one line of global memory and put into different banks; then come the next
// rows.
void copy_async(const SharedTile &to, const Tensor &from, const Value &row,
                const Value &column, int threads) {
  auto piece = static_cast<int>(elements_in(to.layout().type, 16));
  int pieces = to.columns() / piece; // of a row
  int across = std::gcd(pieces, threads), down = threads / across;
  Value thread = thread_id();
  Value own_row = thread / across, own_column = thread % across * piece;
  const Dim &rows = from.shape()[0], &columns = from.shape()[1];
  bool has_rows = covers(rows, to.rows());
  bool has_columns = covers(columns, to.columns());
  // Rows follow one another by a step that is known.
  Tensor own = from.slice(0, row + own_row, to.rows())
                   .slice(1, column + own_column, to.columns(), piece);
  for (int at = 0; at < pieces; at += across) {
    int first = at * piece;
    std::optional<Value> left; // of a row's elements
    if (!has_columns)
      left = max(
          min(value_of(At(columns)) - (column + own_column + first), piece), 0);
    for (int next = 0; next < to.rows(); next += down) {
      std::optional<Value> valid = left;
      if (!has_rows) {
        Value all = left ? *left : constant(i32, piece);
        valid = select(row + own_row + next < rows, all, constant(i32, 0));
      }
      auto copy = [&] {
        async_copy(to(own_row + next, own_column + first), own(next, first),
                   piece, {.valid = valid});
      };
      if (next + down <= to.rows())
        copy();
      else
        if_(own_row + next < to.rows(), copy);
    }
  }
}

} // namespace kiln::gemm_kernel
