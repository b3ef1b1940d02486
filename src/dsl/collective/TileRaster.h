// TileRaster: the order of tiles that schedulers share (tile_scheduler.h).
#pragma once

#include "kiln/language/value/value.h"

#include <optional>

namespace kiln {

/// A tile by its place among rows and columns of tiles.
struct RasterPlace {
  Value row, column;
};

/// How many rows of tiles there are: a number where it is known.
struct RasterRows {
  Value count;
  std::optional<std::int64_t> known = std::nullopt;
};

/// Where the `index`-th of `rows` x `columns` tiles lies: down `group` rows,
/// then to the next column, and back in the next group (serpentine).
RasterPlace rasterPlace(const Value &index, const RasterRows &rows,
                        const Value &columns, int group, bool isSerpentine);

} // namespace kiln
