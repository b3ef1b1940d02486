// TileMemory: register tiles from and to shared tiles and tensors.
#include "dsl/tile/TileMemory.h"
#include "dsl/kernel/State.h"
#include "dsl/tile/TileWalk.h"
#include "kiln/language/value/control.h"
#include "kiln/language/value/math.h"
#include "support/Error.h"

#include <algorithm>

namespace kiln {

TileMemory TileMemory::transposed() const {
  TileMemory result = *this;
  result.isTransposed = !isTransposed;
  result.vector = 1;
  std::swap(result.rowBound, result.columnBound);
  result.load = [load = load](const Value &row, const Value &column,
                              int count) { return load(column, row, count); };
  result.store = [store = store](const Value &row, const Value &column,
                                 const std::vector<Value> &values) {
    store(column, row, values);
  };
  return result;
}

TileMemory TileMemory::below(const Value &first, const Where &where) const {
  TileMemory result = *this;
  if (rowBound)
    result.rowBound = *rowBound - At(first, where);
  result.load = [load = load, first, where](const Value &row,
                                            const Value &column, int count) {
    return load(row + At(first, where), column, count);
  };
  result.store = [store = store, first,
                  where](const Value &row, const Value &column,
                         const std::vector<Value> &values) {
    store(row + At(first, where), column, values);
  };
  return result;
}

TileMemory TileMemory::rightOf(int first, const Where &where) const {
  if (first == 0)
    return *this;
  TileMemory result = *this;
  if (columnBound)
    result.columnBound = *columnBound - At(first, where);
  result.load = [load = load, first, where](const Value &row,
                                            const Value &column, int count) {
    return load(row, column + At(first, where), count);
  };
  result.store = [store = store, first,
                  where](const Value &row, const Value &column,
                         const std::vector<Value> &values) {
    store(row, column + At(first, where), values);
  };
  return result;
}

/// The longest vector whose length divides all of `numbers`.
static int longestVector(Type type,
                         std::initializer_list<std::int64_t> numbers) {
  int count = 16 / size_bytes(type);
  for (std::int64_t number : numbers)
    while (number % count != 0)
      count /= 2;
  return count;
}

TileMemory memoryOf(const SharedTile &tile, const Where &where) {
  SharedTile stored = tile.is_transposed() ? tile.transpose() : tile;
  Type type = tile.layout().type;
  return {
      .type = type,
      .isTransposed = tile.is_transposed(),
      .vector = longestVector(
          type, {tile.layout().panel_columns(), tile.origin_column_multiple()}),
      .load =
          [stored, where](const Value &row, const Value &column, int count) {
            return stored.load_vector(At(row, where), At(column, where), count);
          },
      .store =
          [stored, where](const Value &row, const Value &column,
                          const std::vector<Value> &values) {
            stored.store_vector(At(row, where), At(column, where), values);
          }};
}

/// A number that divides an index of an origin.
static std::int64_t multipleOf(const At &index, int otherwise) {
  if (auto *literal = std::get_if<std::int64_t>(&index.operand()))
    return *literal;
  if (auto *dim = std::get_if<Dim>(&index.operand()))
    return dim->divisor();
  return std::max(otherwise, 1);
}

TileMemory memoryOf(const char *what, const Tensor &tensor,
                    const std::vector<At> &origin, TileSize size,
                    const StoreOptions &options, const Where &where) {
  if (tensor.shape().size() != 2 || origin.size() != 2)
    userErrorAt(where,
                "{} takes a tensor of 2 dimensions and an origin (row, "
                "column); this tensor has {}, the origin {}",
                what, tensor.shape().size(), origin.size());
  for (const At &start : origin)
    if (auto *literal = std::get_if<std::int64_t>(&start.operand());
        literal && *literal < 0)
      userErrorAt(where, "{} at {}; rows and columns begin at 0", what,
                  *literal);
  // Along whichever dimension the elements are neighbours.
  bool isTransposed =
      tensor.strides()[1] != Dim(1) && tensor.strides()[0] == Dim(1);
  Tensor stored = isTransposed ? tensor.transpose(where) : tensor;
  const At &rowAt = origin[isTransposed], &columnAt = origin[!isTransposed];
  if (isTransposed)
    std::swap(size.rows, size.columns);
  Value firstRow = value_of(rowAt), firstColumn = value_of(columnAt);
  auto mustCompare = [&](int dimension, const At &start, int extent) {
    auto *literal = std::get_if<std::int64_t>(&start.operand());
    return !options.is_inside &&
           !(literal && stored.surely_holds(dimension, *literal + extent));
  };
  TileMemory memory{.type = tensor.type(), .isTransposed = isTransposed};
  if (stored.strides()[1] == Dim(1))
    memory.vector = longestVector(
        tensor.type(),
        {multipleOf(columnAt, isTransposed ? 1 : options.column_multiple),
         stored.strides()[0].divisor(), stored.base_multiple(),
         mustCompare(1, columnAt, size.columns) ? stored.bound_multiple(1)
                                                : 0});
  if (mustCompare(0, rowAt, size.rows))
    memory.rowBound = stored.bound(0, where) - At(firstRow, where);
  if (mustCompare(1, columnAt, size.columns))
    memory.columnBound = stored.bound(1, where) - At(firstColumn, where);
  auto place = [=](const Value &row, const Value &column) -> std::vector<At> {
    return {At(firstRow + At(row, where), where),
            At(firstColumn + At(column, where), where)};
  };
  memory.load = [=](const Value &row, const Value &column, int count) {
    return stored.load_vector(place(row, column), count);
  };
  memory.store = [=](const Value &row, const Value &column,
                     const std::vector<Value> &values) {
    stored.store_vector(place(row, column), values);
  };
  return memory;
}

void checkType(const char *what, Type memory, Type tile, const Where &where) {
  if (memory != tile)
    userErrorAt(where, "{} of a tile of {} and memory of {}; `cast` the tile",
                what, name(tile), name(memory));
}

/// Run `body` where `index` lies below the bound, if there is one.
template <typename Body>
static void whereInside(const Value &index, const std::optional<Value> &bound,
                        const Where &where, Body &&body) {
  if (bound)
    if_(At(index < At(*bound, where), where), body);
  else
    body();
}

/// Call `body(row, column, register, count)` for every vector of the tile that
/// lies inside `memory`.
template <typename Body>
static void forEachVector(const RegisterLayout &tile, const TileMemory &memory,
                          const Where &where, Body &&body) {
  RegisterLayout layout = memory.isTransposed ? tile.transpose(where) : tile;
  TileWalk walk(layout, where);
  int count = std::min(walk.vector(), memory.vector);
  walk.forEachRow([&](const Value &row, std::span<const int> registers) {
    whereInside(row, memory.rowBound, where, [&] {
      for (int first : registers)
        for (int reg = first; reg < first + walk.vector(); reg += count) {
          Value column = walk.column(reg);
          whereInside(column, memory.columnBound, where,
                      [&] { body(row, column, reg, count); });
        }
    });
  });
}

/// Call `body` for every vector of the tile, with a function that runs another
/// one under the predicate that the vector lies inside.
template <typename Body>
static void forEachGuarded(const RegisterLayout &tile, const TileMemory &memory,
                           const Where &where, Body &&body) {
  TileMemory unbounded = memory;
  unbounded.rowBound = unbounded.columnBound = std::nullopt;
  forEachVector(tile, unbounded, where,
                [&](const Value &row, const Value &column, int reg, int count) {
                  std::optional<Value> isInside;
                  auto compare = [&](const Value &index,
                                     const std::optional<Value> &bound) {
                    if (!bound)
                      return;
                    Value isBelow = index < At(*bound, where);
                    isInside =
                        isInside ? *isInside && At(isBelow, where) : isBelow;
                  };
                  compare(row, memory.rowBound);
                  compare(column, memory.columnBound);
                  body(row, column, reg, count, [&](const auto &access) {
                    if (isInside)
                      predicated(At(*isInside, where), access);
                    else
                      access();
                  });
                });
}

void loadAtOnce(RegisterTile &tile, const TileMemory &from,
                const Where &where) {
  forEachGuarded(tile.layout(), from, where,
                 [&](const Value &row, const Value &column, int reg, int count,
                     const auto &guarded) {
                   std::vector<Value> values;
                   guarded([&] { values = from.load(row, column, count); });
                   for (int i = 0; i < count; ++i)
                     tile.set(reg + i, At(values[i], where));
                 });
}

void storeAtOnce(const RegisterTile &tile, const TileMemory &to,
                 const Where &where) {
  forEachGuarded(tile.layout(), to, where,
                 [&](const Value &row, const Value &column, int reg, int count,
                     const auto &guarded) {
                   std::vector<Value> values;
                   for (int i = 0; i < count; ++i)
                     values.push_back(tile.element(reg + i, where));
                   guarded([&] { to.store(row, column, values); });
                 });
}

void loadElements(RegisterTile &tile, const TileMemory &from,
                  const Where &where) {
  forEachVector(tile.layout(), from, where,
                [&](const Value &row, const Value &column, int reg, int count) {
                  std::vector<Value> values = from.load(row, column, count);
                  for (int i = 0; i < count; ++i)
                    tile.set(reg + i, At(values[i], where));
                });
}

/// An i1: the calling thread has the first copy of its elements; nothing where
/// there are no copies.
static std::optional<Value> isFirstCopy(const RegisterLayout &layout,
                                        const Where &where) {
  std::optional<Value> isFirst;
  if (layout.copies() == 1)
    return isFirst;
  std::vector<Value> digits = threadDigits(layout, where);
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const LayoutMode &mode = layout.thread_modes()[i];
    if (mode.row || mode.column)
      continue;
    Value isZero = digits[i] == At(0, where);
    isFirst = isFirst ? *isFirst && At(isZero, where) : isZero;
  }
  return isFirst;
}

void storeElements(const RegisterTile &tile, const TileMemory &to,
                   const Where &where) {
  auto write = [&] {
    forEachVector(
        tile.layout(), to, where,
        [&](const Value &row, const Value &column, int reg, int count) {
          std::vector<Value> values;
          for (int i = 0; i < count; ++i)
            values.push_back(tile.element(reg + i, where));
          to.store(row, column, values);
        });
  };
  if (std::optional<Value> isFirst = isFirstCopy(tile.layout(), where))
    if_(At(*isFirst, where), write);
  else
    write();
}

/// Refuse a shared tile of another shape than the register tile's.
static void checkShape(const char *what, const SharedTile &memory,
                       const RegisterLayout &layout, const Where &where) {
  if (memory.rows() != layout.rows() || memory.columns() != layout.columns())
    userErrorAt(where,
                "{} of a tile of {}x{} and a shared tile of {}x{}; they have "
                "one shape: `slice` takes a part",
                what, layout.rows(), layout.columns(), memory.rows(),
                memory.columns());
}

void RegisterTile::store(const SharedTile &to, Where where) const {
  KernelBuilder::State::current(where);
  LocationScope scope(where);
  checkType("store", to.layout().type, type_, where);
  checkShape("store", to, layout_, where);
  storeElements(*this, memoryOf(to, where), where);
}

void RegisterTile::store(const Tensor &to, const std::vector<At> &origin,
                         const StoreOptions &options, Where where) const {
  KernelBuilder::State::current(where);
  LocationScope scope(where);
  checkType("store", to.type(), type_, where);
  storeElements(
      *this, memoryOf("store", to, origin, {rows(), columns()}, options, where),
      where);
}

RegisterTile load_tile(const RegisterLayout &layout, const SharedTile &from,
                       Where where) {
  KernelBuilder::State::current(where);
  LocationScope scope(where);
  checkShape("load_tile", from, layout, where);
  RegisterTile tile(from.layout().type, layout, where);
  loadElements(tile, memoryOf(from, where), where);
  return tile;
}

Value fillOf(const At &fill, Type type) {
  double number = 0;
  if (auto *literal = std::get_if<std::int64_t>(&fill.operand()))
    number = static_cast<double>(*literal);
  else if (auto *real = std::get_if<double>(&fill.operand()))
    number = *real;
  else
    return value_of(fill);
  if (!isEightBitFloat(type))
    return constant(type, fill);
  auto bits = static_cast<std::int64_t>(to_bits(type, number));
  return bitcast(constant(Type::u8, At(bits, fill.where())), type);
}

RegisterTile load_tile(const RegisterLayout &layout, const Tensor &from,
                       const std::vector<At> &origin,
                       const LoadOptions &options, Where where) {
  KernelBuilder::State::current(where);
  LocationScope scope(where);
  TileMemory memory =
      memoryOf("load_tile", from, origin, {layout.rows(), layout.columns()},
               {options.is_inside, options.column_multiple}, where);
  RegisterTile tile(from.type(), layout, where);
  if (memory.rowBound || memory.columnBound)
    tile.fill(At(fillOf(options.fill, from.type()), where));
  loadElements(tile, memory, where);
  return tile;
}

} // namespace kiln
