// TileLayout: where an element of a shared-memory tile lies.
#include "kiln/language/memory/memory.h"
#include "support/Error.h"

#include <algorithm>

namespace kiln {

Swizzle default_swizzle(Type type, int columns) {
  for (Swizzle swizzle : {Swizzle::b128, Swizzle::b64, Swizzle::b32})
    if (columns > 0 && bytes_of(type, columns) % static_cast<int>(swizzle) == 0)
      return swizzle;
  return Swizzle::none;
}

TileLayout TileLayout::of(Type type, int rows, int columns) {
  TileLayout layout{type, rows, columns, default_swizzle(type, columns)};
  // Each of several panels must begin a pattern of eight rows.
  if (layout.panels() > 1 && rows % 8 != 0)
    layout.swizzle = Swizzle::none;
  return layout;
}

int TileLayout::panel_columns() const {
  if (swizzle == Swizzle::none)
    return panel ? panel : columns;
  return static_cast<int>(std::min<std::int64_t>(
      columns, elements_in(type, static_cast<int>(swizzle))));
}

int TileLayout::alignment_bytes() const {
  // A pattern repeats every eight rows of its width; TMA itself asks for 128.
  return std::max(128, static_cast<int>(swizzle) * 8);
}

int TileLayout::stride_bytes() const {
  int alignment = alignment_bytes();
  return (bytes() + alignment - 1) / alignment * alignment;
}

int TileLayout::offset_bytes(int row, int column) const {
  int panel = column / panel_columns();
  int offset = panel * panel_bytes() + row * row_bytes() +
               static_cast<int>(bytes_of(type, column % panel_columns()));
  if (swizzle == Swizzle::none)
    return offset;
  // Bits 7.. select among the 16-byte chunks of a row (bits 4..).
  int chunks = static_cast<int>(swizzle) / 16;
  return offset ^ (((offset >> 7) & (chunks - 1)) << 4);
}

std::string TileLayout::to_string() const {
  std::string text = fmt::format("{}x{} {}", rows, columns, name(type));
  if (swizzle != Swizzle::none)
    text += fmt::format(", swizzle {}", static_cast<int>(swizzle));
  if (panel)
    text += fmt::format(", panels of {}", panel);
  return text;
}

void TileLayout::check(const SourceLine &where) const {
  if (rows < 1 || columns < 1)
    userErrorAt(where,
                "a tile of {}x{} has no elements; both sides must be at "
                "least 1",
                rows, columns);
  if (rows > 256)
    userErrorAt(where,
                "a tile of {} rows is higher than a TMA box, which has "
                "at most 256; split it",
                rows);
  auto rowBytes = static_cast<int>(bytes_of(type, columns));
  int width = static_cast<int>(swizzle);
  if (panel && swizzle != Swizzle::none)
    userErrorAt(where,
                "a tile with panels of {} columns and a swizzle of {}; the "
                "swizzle's width is the panel: leave one of them out",
                panel, width);
  if (panel < 0 || (panel && columns % panel != 0))
    userErrorAt(where,
                "{} columns do not lie in panels of {}; use a divisor of {}",
                columns, panel, columns);
  if (swizzle == Swizzle::none) {
    if (panel_columns() > 256)
      userErrorAt(where,
                  "a tile of {} columns without a swizzle is wider than "
                  "a TMA box, which has at most 256; use a swizzle or "
                  "split it",
                  panel_columns());
    if (row_bytes() % 16 != 0)
      userErrorAt(where,
                  "the rows of a {}x{} tile of {} are {} bytes; TMA "
                  "needs a multiple of 16",
                  rows, columns, name(type), row_bytes());
    return;
  }
  if (rowBytes % width != 0)
    userErrorAt(where,
                "the rows of a {}x{} tile of {} are {} bytes, not a multiple "
                "of its swizzle of {}; use columns in multiples of {} or "
                "another swizzle",
                rows, columns, name(type), rowBytes, width,
                elements_in(type, width));
  if (panels() > 1 && rows % 8 != 0)
    userErrorAt(where,
                "a {}x{} tile of {} lies in {} panels of {} rows; each must "
                "begin a swizzle pattern: use a multiple of 8 rows",
                rows, columns, name(type), panels(), rows);
}

} // namespace kiln
