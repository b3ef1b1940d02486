// TileMemory: a rectangle of memory, as tiles in registers are moved to and
// from it: one walk for shared tiles and for tensors, with and without bounds.
#pragma once

#include "kiln/language/memory/memory.h"
#include "kiln/language/tile/register_tile.h"

#include <functional>
#include <optional>

namespace kiln {

struct TileSize {
  int rows, columns;
};

struct TileMemory {
  using Load = std::function<std::vector<Value>(
      const Value &row, const Value &column, int count)>;
  using Store = std::function<void(const Value &row, const Value &column,
                                   const std::vector<Value> &values)>;

  Type type;
  /// Rows and columns here are columns and rows of what was asked for, because
  /// those are neighbours in memory.
  bool isTransposed = false;
  /// So many neighbours in a row, from a multiple of them on, go in one
  /// instruction; a power of two.
  int vector = 1;
  /// Where it ends, where that must be compared.
  std::optional<Value> rowBound, columnBound;
  Load load;
  Store store;

  /// The same, seen the other way round, where neighbours lie apart.
  TileMemory transposed() const;
  /// The same from row `first` on.
  TileMemory below(const Value &first, const Where &where) const;
  /// The same from column `first` on, a multiple of `vector`.
  TileMemory rightOf(int first, const Where &where) const;
};

TileMemory memoryOf(const SharedTile &tile, const Where &where);
/// A tile of a tensor of two dimensions from `origin` on. `what`
/// asks for it.
TileMemory memoryOf(const char *what, const Tensor &tensor,
                    const std::vector<At> &origin, TileSize size,
                    const StoreOptions &options, const Where &where);

/// Refuse memory of another type than the tile's. `what`: "load_tile", "store".
void checkType(const char *what, Type memory, Type tile, const Where &where);

/// What stands for elements outside, as a value of `type`; literals of every
/// type there is, also of those that are only carried.
Value fillOf(const At &fill, Type type);

/// Read every element that lies inside; the others stay as they are.
void loadElements(RegisterTile &tile, const TileMemory &from,
                  const Where &where);
/// Write every element that lies inside.
void storeElements(const RegisterTile &tile, const TileMemory &to,
                   const Where &where);

// The same with a predicate in front of each access instead of a branch around
// it: those of a tile are in flight together, where a branch waits for the one
// before.

/// What lies outside becomes 0.
void loadAtOnce(RegisterTile &tile, const TileMemory &from, const Where &where);
void storeAtOnce(const RegisterTile &tile, const TileMemory &to,
                 const Where &where);

} // namespace kiln
