// tile_math.h: arithmetic of register tiles, element by element and by rows.
//
// Every thread computes with the elements it holds; nothing moves but in a
// reduction. Tiles of one expression have one layout, or are broadcast: a tile
// of one column stands for all columns of its rows, one of one row for all rows
// of its columns, as reductions give them.
//
//     RegisterTile s = load_tile(layout, scores);           // [64, 64] f32
//     s = s * 1.442695 - reduce_rows(s * 1.442695, Reduction::max);
//     s = exp2(s);
//     s = fast_divide(s, reduce_rows(s, Reduction::add));
//
// Scalars on either side are Values, literals or Dims, as with Values.
#pragma once

#include <kiln/base/export.h>
#include <kiln/language/value/math.h>
#include <kiln/language/memory/memory.h>
#include <kiln/language/tile/reduction.h>
#include <kiln/language/tile/register_tile.h>
#include <kiln/language/threads/threads.h>

#include <optional>
#include <utility>

namespace KILN_API kiln {

/// A tile with the line it stands on. Never written by hand.
class TileAt {
public:
  TileAt(const RegisterTile &tile, Where where = Where::current())
      : tile_(&tile), where_(where) {}

  const RegisterTile &tile() const { return *tile_; }
  const Where &where() const { return where_; }

private:
  const RegisterTile *tile_;
  Where where_;
};

/// What can stand beside a tile and means one value for all its elements.
template <typename T>
concept ScalarOperand = std::constructible_from<At, const T &, Where>;

/// The right operand of a tile: a tile or a scalar. Never written by hand.
class TileOperand {
public:
  TileOperand(const RegisterTile &tile, Where where = Where::current())
      : tile_(&tile), where_(where) {}
  template <ScalarOperand T>
  TileOperand(const T &scalar, Where where = Where::current())
      : scalar_(At(scalar, where)), where_(where) {}

  /// Nothing where it is a scalar.
  const RegisterTile *tile() const { return tile_; }
  const std::optional<At> &scalar() const { return scalar_; }
  const Where &where() const { return where_; }

private:
  const RegisterTile *tile_ = nullptr;
  std::optional<At> scalar_;
  Where where_;
};

RegisterTile operator+(const RegisterTile &lhs, TileOperand rhs);
RegisterTile operator-(const RegisterTile &lhs, TileOperand rhs);
RegisterTile operator*(const RegisterTile &lhs, TileOperand rhs);
RegisterTile operator/(const RegisterTile &lhs, TileOperand rhs);
RegisterTile operator-(TileAt operand);
RegisterTile min(const RegisterTile &lhs, TileOperand rhs);
RegisterTile max(const RegisterTile &lhs, TileOperand rhs);
/// a * b + c rounded once.
RegisterTile fma(const RegisterTile &a, TileOperand b, TileOperand c);
/// Every element in another type.
RegisterTile cast(const RegisterTile &tile, Type type,
                  Where where = Where::current());

// Functions of f32, as those of one Value (math.h).
RegisterTile sqrt(TileAt x, const MathOptions &options = {});
RegisterTile rsqrt(TileAt x, const MathOptions &options = {});
RegisterTile rcp(TileAt x, const MathOptions &options = {});
RegisterTile exp2(TileAt x, const MathOptions &options = {});
RegisterTile log2(TileAt x, const MathOptions &options = {});
RegisterTile tanh(TileAt x);
/// lhs * rcp(rhs), with one rcp for each element of `rhs` that a thread has:
/// two for the 64 quotients of an accumulator's rows. An error of 2 units in
/// the last place; `/` is rounded correctly, in some ten instructions for each
/// quotient.
RegisterTile fast_divide(const RegisterTile &lhs, TileOperand rhs,
                         const MathOptions &options = {});

/// A tile of `like`'s layout whose elements are all `scalar`.
RegisterTile splat(At scalar, const RegisterTile &like);

#define KILN_SCALAR_ON_THE_LEFT(op)                                            \
  template <ScalarOperand T>                                                   \
  RegisterTile operator op(const T &lhs, TileAt rhs) {                         \
    return splat(At(lhs, rhs.where()), rhs.tile())                             \
        op TileOperand(rhs.tile(), rhs.where());                               \
  }
KILN_SCALAR_ON_THE_LEFT(+)
KILN_SCALAR_ON_THE_LEFT(-)
KILN_SCALAR_ON_THE_LEFT(*)
KILN_SCALAR_ON_THE_LEFT(/)
#undef KILN_SCALAR_ON_THE_LEFT

/// What `map` needs of its tiles: the layout of the result, the largest of
/// theirs, and for each tile the register that stands for each of its
/// registers.
struct Broadcast {
  Broadcast(std::vector<const RegisterTile *> tiles, const Where &where);
  /// What tile `index` has for register `reg` of the result.
  Value element(int index, int reg) const;

  RegisterLayout layout;
  std::vector<const RegisterTile *> tiles;
  std::vector<std::vector<int>> registers;
  Where where;
};

/// `function` of what the tiles have for one register of the result.
template <typename Function, std::size_t... Index>
Value map_register(const Function &function, const Broadcast &tiles, int reg,
                   std::index_sequence<Index...>) {
  return function(tiles.element(Index, reg)...);
}

/// Any function of Values on the elements of tiles, broadcast as above; it is
/// called once per register while the kernel is built:
///
///     map([](Value x, Value y) { return select(x < y, x * 2, y); }, a, b)
template <typename Function, typename... Tiles>
RegisterTile map(const Function &function, TileAt first, const Tiles &...rest) {
  Broadcast all({&first.tile(), &rest...}, first.where());
  std::vector<Value> values;
  for (int reg = 0; reg < all.layout.registers(); ++reg)
    values.push_back(map_register(
        function, all, reg, std::make_index_sequence<1 + sizeof...(rest)>()));
  return RegisterTile(all.layout, values, all.where);
}

struct ReduceOptions {
  /// Where rows lie in several warps: a tile of the same type with a row for
  /// each row and a column for each of these warps, through which they meet.
  std::optional<SharedTile> scratch = {};
  /// Of the layout's threads; left out: they are the CTA.
  std::optional<NamedBarrier> barrier = {};
};

/// Sums (add), least (min) or greatest (max) elements: one value per row,
/// [rows, 1], in every thread that holds elements of it: the
/// elements of a thread first, in the order of its registers, then lanes 1, 2,
/// 4 ... apart (shfl.sync.bfly), then the warps in their order, through
/// `scratch`.
RegisterTile reduce_rows(const RegisterTile &tile, Reduction reduction,
                         const ReduceOptions &options = {},
                         Where where = Where::current());
/// One value per column, [1, columns]; the scratch tile has a row for each
/// column.
RegisterTile reduce_columns(const RegisterTile &tile, Reduction reduction,
                            const ReduceOptions &options = {},
                            Where where = Where::current());

} // namespace kiln
