// TileMath: element-wise arithmetic of register tiles.
#include "dsl/kernel/State.h"
#include "kiln/language/tile/tile_math.h"
#include "kiln/language/value/vector.h"
#include "support/Error.h"

namespace kiln {

/// The layout of a result: that of the tile with the most elements.
static const RegisterLayout &
largestLayout(const std::vector<const RegisterTile *> &tiles) {
  const RegisterLayout *largest = &tiles[0]->layout();
  for (const RegisterTile *tile : tiles)
    if (tile->rows() * tile->columns() > largest->rows() * largest->columns())
      largest = &tile->layout();
  return *largest;
}

Broadcast::Broadcast(std::vector<const RegisterTile *> all, const Where &line)
    : layout(largestLayout(all)), tiles(std::move(all)), where(line) {
  for (const RegisterTile *tile : tiles) {
    registers.push_back(tile->layout().registers_for(layout));
    if (registers.back().empty())
      userErrorAt(where,
                  "tiles of {} and of {} do not go together: each thread "
                  "computes with what it holds; their layouts are equal, or "
                  "one has a single row or column in the same threads",
                  layout.to_string(), tile->layout().to_string());
  }
}

Value Broadcast::element(int index, int reg) const {
  return tiles[index]->element(registers[index][reg], where);
}

/// What a tile has for all registers of the result.
static Values valuesOf(const Broadcast &tiles, int index) {
  Values values;
  for (int reg = 0; reg < tiles.layout.registers(); ++reg)
    values.push_back(tiles.element(index, reg));
  return values;
}

/// `operation` of the elements of `lhs` with those of `rhs`, or with a scalar;
/// neighbours together, so that halves go by pairs (vector.h).
template <typename Operation>
static RegisterTile combined(const RegisterTile &lhs, const TileOperand &rhs,
                             Operation &&operation) {
  const Where &where = rhs.where();
  if (rhs.tile()) {
    Broadcast both({&lhs, rhs.tile()}, where);
    return RegisterTile(both.layout,
                        operation(valuesOf(both, 0), valuesOf(both, 1)), where);
  }
  auto &state = KernelBuilder::State::current(where);
  Value scalar = state.resolve(*rhs.scalar(), lhs.type());
  return RegisterTile(
      lhs.layout(),
      operation(lhs.values(where), Values(lhs.registers(), scalar)), where);
}

RegisterTile operator+(const RegisterTile &lhs, TileOperand rhs) {
  return combined(lhs, rhs, [&](const Values &a, const Values &b) {
    return a + AtEach(b, rhs.where());
  });
}
RegisterTile operator-(const RegisterTile &lhs, TileOperand rhs) {
  return combined(lhs, rhs, [&](const Values &a, const Values &b) {
    return a - AtEach(b, rhs.where());
  });
}
RegisterTile operator*(const RegisterTile &lhs, TileOperand rhs) {
  return combined(lhs, rhs, [&](const Values &a, const Values &b) {
    return a * AtEach(b, rhs.where());
  });
}
RegisterTile min(const RegisterTile &lhs, TileOperand rhs) {
  return combined(lhs, rhs, [&](const Values &a, const Values &b) {
    return min(a, b, rhs.where());
  });
}
RegisterTile max(const RegisterTile &lhs, TileOperand rhs) {
  return combined(lhs, rhs, [&](const Values &a, const Values &b) {
    return max(a, b, rhs.where());
  });
}
RegisterTile operator/(const RegisterTile &lhs, TileOperand rhs) {
  return combined(lhs, rhs, [&](const Values &a, const Values &b) {
    Values quotients;
    for (std::size_t i = 0; i < a.size(); ++i)
      quotients.push_back(a[i] / At(b[i], rhs.where()));
    return quotients;
  });
}

RegisterTile fast_divide(const RegisterTile &lhs, TileOperand rhs,
                         const MathOptions &options) {
  const Where &where = rhs.where();
  if (rhs.tile())
    return lhs * TileOperand(rcp(TileAt(*rhs.tile(), where), options), where);
  auto &state = KernelBuilder::State::current(where);
  Value scalar = state.resolve(*rhs.scalar(), lhs.type());
  return lhs * TileOperand(rcp(At(scalar, where), options), where);
}

/// A function of one Value on each element.
static RegisterTile each(TileAt x, const MathOptions &options,
                         Value (*function)(At, const MathOptions &)) {
  return map(
      [&](const Value &value) {
        return function(At(value, x.where()), options);
      },
      x);
}

RegisterTile sqrt(TileAt x, const MathOptions &options) {
  return each(x, options, sqrt);
}
RegisterTile rsqrt(TileAt x, const MathOptions &options) {
  return each(x, options, rsqrt);
}
RegisterTile rcp(TileAt x, const MathOptions &options) {
  return each(x, options, rcp);
}
RegisterTile exp2(TileAt x, const MathOptions &options) {
  return each(x, options, exp2);
}
RegisterTile log2(TileAt x, const MathOptions &options) {
  return each(x, options, log2);
}
RegisterTile tanh(TileAt x) {
  return map([&](const Value &value) { return tanh(At(value, x.where())); }, x);
}

RegisterTile operator-(TileAt operand) {
  return map([&](const Value &a) { return -At(a, operand.where()); }, operand);
}

RegisterTile splat(At scalar, const RegisterTile &like) {
  return RegisterTile(like.type(), like.layout(), scalar);
}

RegisterTile fma(const RegisterTile &a, TileOperand b, TileOperand c) {
  auto asTile = [&](const TileOperand &operand) {
    return operand.tile() ? *operand.tile() : splat(*operand.scalar(), a);
  };
  RegisterTile factor = asTile(b), sum = asTile(c);
  Broadcast all({&a, &factor, &sum}, b.where());
  return RegisterTile(all.layout,
                      fma(valuesOf(all, 0), AtEach(valuesOf(all, 1), b.where()),
                          AtEach(valuesOf(all, 2), c.where())),
                      b.where());
}

RegisterTile cast(const RegisterTile &tile, Type type, Where where) {
  return RegisterTile(tile.layout(), cast(tile.values(where), type, where),
                      where);
}

} // namespace kiln
