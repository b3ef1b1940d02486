// LayoutFigure: layouts as tables of text and as SVG.
#include "kiln/language/tile/layout_figure.h"
#include "support/Error.h"

#include <algorithm>

namespace kiln {

namespace {
/// Rows of cells under a heading; the first cell of each names it.
struct Table {
  std::vector<std::string> heading;
  std::vector<std::vector<std::string>> lines;

  /// Every cell flush right in the widest one's width.
  std::string to_string() const {
    std::size_t width = 1;
    auto widen = [&](const std::vector<std::string> &cells) {
      for (const std::string &cell : cells)
        width = std::max(width, cell.size());
    };
    widen(heading);
    for (const std::vector<std::string> &line : lines)
      widen(line);
    std::string text;
    auto add = [&](const std::vector<std::string> &cells) {
      for (std::size_t i = 0; i < cells.size(); ++i)
        text += fmt::format("{}{:>{}}", i ? "  " : "", cells[i], width);
      text += '\n';
    };
    add(heading);
    for (const std::vector<std::string> &line : lines)
      add(line);
    return text;
  }
};

/// An element and a place, the first one where there are copies.
struct Held {
  TileElement at;
  RegisterPlace place;
};

/// A piece of 16 bytes of a shared tile.
struct Piece {
  TileElement first;
  int byte;
};
} // namespace

/// What is held, by row and column: one pass over the places, for looking each
/// element up would take one pass each.
static std::vector<Held> heldElements(const RegisterLayout &layout) {
  std::vector<Held> all(layout.rows() * layout.columns(), Held{{}, {-1, 0}});
  for (int thread = 0; thread < layout.threads(); ++thread)
    for (int reg = 0; reg < layout.registers(); ++reg) {
      TileElement at = layout.element(thread, reg);
      Held &held = all[at.row * layout.columns() + at.column];
      if (held.place.thread < 0)
        held = {at, {thread, reg}};
    }
  return all;
}

static constexpr int kPieceBytes = 16;
static constexpr int kLineBytes = 128;

/// Elements of a piece of 16 bytes.
static int perPiece(const TileLayout &layout) {
  return static_cast<int>(elements_in(layout.type, kPieceBytes));
}

/// By row and column.
static std::vector<Piece> piecesOf(const TileLayout &layout) {
  std::vector<Piece> pieces;
  for (int row = 0; row < layout.rows; ++row)
    for (int column = 0; column < layout.columns; column += perPiece(layout))
      pieces.push_back({{row, column}, layout.offset_bytes(row, column)});
  return pieces;
}

static std::string describe(const TileLayout &layout) {
  return fmt::format("shared {}: {} bytes, aligned to {}", layout.to_string(),
                     layout.bytes(), layout.alignment_bytes());
}

std::string layout_table(const RegisterLayout &layout) {
  Table where{{""}, {}}, what{{"thread"}, {}};
  for (int column = 0; column < layout.columns(); ++column)
    where.heading.push_back(std::to_string(column));
  std::vector<Held> all = heldElements(layout);
  for (int row = 0; row < layout.rows(); ++row) {
    where.lines.push_back({std::to_string(row)});
    for (int column = 0; column < layout.columns(); ++column) {
      RegisterPlace place = all[row * layout.columns() + column].place;
      where.lines.back().push_back(
          fmt::format("{}.{}", place.thread, place.reg));
    }
  }
  for (int reg = 0; reg < layout.registers(); ++reg)
    what.heading.push_back(fmt::format("r{}", reg));
  for (int thread = 0; thread < layout.threads(); ++thread) {
    what.lines.push_back({std::to_string(thread)});
    for (int reg = 0; reg < layout.registers(); ++reg) {
      TileElement at = layout.element(thread, reg);
      what.lines.back().push_back(fmt::format("{},{}", at.row, at.column));
    }
  }
  std::string copies =
      layout.copies() == 1
          ? ""
          : fmt::format(", the first of {} copies", layout.copies());
  return fmt::format("{}\n\nwho holds each element: thread.register by row and "
                     "column{}\n{}\nwhat each thread holds: row,column by "
                     "register\n{}",
                     layout.to_string(), copies, where.to_string(),
                     what.to_string());
}

std::string layout_table(const TileLayout &layout) {
  layout.check({});
  Table where{{""}, {}}, what{{"byte"}, {}};
  for (int column = 0; column < layout.columns; column += perPiece(layout))
    where.heading.push_back(std::to_string(column));
  for (int byte = 0; byte < std::min(layout.bytes(), kLineBytes);
       byte += kPieceBytes)
    what.heading.push_back(fmt::format("+{}", byte));
  for (int byte = 0; byte < layout.bytes(); byte += kLineBytes) {
    what.lines.push_back({std::to_string(byte)});
    int pieces = std::min(kLineBytes, layout.bytes() - byte) / kPieceBytes;
    what.lines.back().resize(1 + pieces);
  }
  for (const Piece &piece : piecesOf(layout)) {
    if (piece.first.column == 0)
      where.lines.push_back({std::to_string(piece.first.row)});
    where.lines.back().push_back(std::to_string(piece.byte));
    what.lines[piece.byte / kLineBytes]
              [1 + piece.byte % kLineBytes / kPieceBytes] =
        fmt::format("{},{}", piece.first.row, piece.first.column);
  }
  return fmt::format("{}\n\nwhere each element is: the byte of {} neighbours "
                     "by row and column\n{}\nwhat lies where: row,column of {} "
                     "neighbours by byte\n{}",
                     describe(layout), perPiece(layout), where.to_string(),
                     perPiece(layout), what.to_string());
}

// Pictures: a grid of cells of one size, with numbers above and beside it.

namespace {
class Grid {
public:
  Grid(const std::string &title, int lines, int cells, int cellWidth)
      : cellWidth_(cellWidth) {
    int width = kMargin + cells * cellWidth + 10;
    text_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" "
        "height=\"{1}\" viewBox=\"0 0 {0} {1}\" font-family=\"monospace\" "
        "font-size=\"9\">\n<rect width=\"{0}\" height=\"{1}\" "
        "fill=\"white\"/>\n<text x=\"10\" y=\"16\" font-size=\"11\">{2}"
        "</text>\n",
        std::max(width, 20 + 7 * static_cast<int>(title.size())),
        kTop + lines * kCellHeight + 10, title);
  }

  /// A number beside line `line`, or above cell `cell`.
  void nameLine(int line, int number) {
    addText(kMargin - 4, kTop + line * kCellHeight + 12, "end",
            std::to_string(number));
  }
  void nameCell(int cell, const std::string &name) {
    addText(kMargin + cell * cellWidth_ + cellWidth_ / 2, kTop - 5, "middle",
            name);
  }

  void addCell(int line, int cell, int colour, const std::string &label) {
    static constexpr const char *kColours[] = {"#ffd9d9", "#ffe9c9", "#fdf7c3",
                                               "#dcf3d0", "#cdeeea", "#d3e4fb",
                                               "#e4dbfa", "#f7d8ee"};
    int x = kMargin + cell * cellWidth_, y = kTop + line * kCellHeight;
    text_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" "
                         "fill=\"{}\" stroke=\"#777\"/>\n",
                         x, y, cellWidth_, kCellHeight, kColours[colour % 8]);
    addText(x + cellWidth_ / 2, y + 12, "middle", label);
  }

  std::string finish() const { return text_ + "</svg>\n"; }

private:
  static constexpr int kMargin = 46, kTop = 40, kCellHeight = 18;

  void addText(int x, int y, const char *anchor, const std::string &label) {
    text_ +=
        fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\">{}</text>\n", x,
                    y, anchor, label);
  }

  int cellWidth_;
  std::string text_;
};
} // namespace

std::string layout_svg(const RegisterLayout &layout) {
  Grid grid(layout.to_string(), layout.rows(), layout.columns(), 50);
  for (int row = 0; row < layout.rows(); ++row)
    grid.nameLine(row, row);
  for (int column = 0; column < layout.columns(); ++column)
    grid.nameCell(column, std::to_string(column));
  for (const Held &held : heldElements(layout))
    grid.addCell(held.at.row, held.at.column, held.place.thread,
                 fmt::format("T{} r{}", held.place.thread, held.place.reg));
  return grid.finish();
}

std::string layout_svg(const TileLayout &layout) {
  layout.check({});
  int lines = (layout.bytes() + kLineBytes - 1) / kLineBytes;
  Grid grid(describe(layout), lines, kLineBytes / kPieceBytes, 62);
  for (int line = 0; line < lines; ++line)
    grid.nameLine(line, line * kLineBytes);
  for (int cell = 0; cell < kLineBytes / kPieceBytes; ++cell)
    grid.nameCell(cell, fmt::format("+{}", cell * kPieceBytes));
  for (const Piece &piece : piecesOf(layout))
    grid.addCell(piece.byte / kLineBytes, piece.byte % kLineBytes / kPieceBytes,
                 piece.first.row,
                 fmt::format("{},{}", piece.first.row, piece.first.column));
  return grid.finish();
}

// Tensor memory: four columns of 32 bits, 16 bytes, to a cell.

static constexpr int kTensorLanes = 128, kTensorColumns = 512;
static constexpr int kCellWords = 4, kWarpLanes = 32;

void TensorLayout::check() const {
  if (size_bytes(type) != 4 && size_bytes(type) != 2)
    userError("tensor memory holds types of 32 and 16 bits, not {}",
              name(type));
  if (rows != 64 && rows != kTensorLanes)
    userError("a tile of {} rows in tensor memory; 64 or 128 are possible",
              rows);
  if (columns < 1 || columns * size_bytes(type) % 4 || words() > kTensorColumns)
    userError("a tile of {} columns of {} in tensor memory; its rows fill 1 to "
              "{} columns of 32 bits",
              columns, name(type), kTensorColumns);
}

std::string TensorLayout::to_string() const {
  return fmt::format("tensor-memory {}x{} {}: {} lanes of {} columns", rows,
                     columns, name(type), kTensorLanes, words());
}

/// What lies in `lane`: -1, or a row.
static int rowIn(const TensorLayout &layout, int lane) {
  for (int row = 0; row < layout.rows; ++row)
    if (layout.lane(row) == lane)
      return row;
  return -1;
}

/// Call `body(lane, cell, row, column)` for each cell that holds something.
template <typename Body>
static void forEachCell(const TensorLayout &layout, const Body &body) {
  for (int lane = 0; lane < kTensorLanes; ++lane)
    if (int row = rowIn(layout, lane); row >= 0)
      for (int word = 0; word < layout.words(); word += kCellWords)
        body(lane, word / kCellWords, row, word * 4 / size_bytes(layout.type));
}

std::string layout_table(const TensorLayout &layout) {
  layout.check();
  Table table{{"lane", "warp"}, {}};
  int cells = (layout.words() + kCellWords - 1) / kCellWords;
  for (int cell = 0; cell < cells; ++cell)
    table.heading.push_back(std::to_string(cell * kCellWords));
  for (int lane = 0; lane < kTensorLanes; ++lane) {
    table.lines.push_back(
        {std::to_string(lane), std::to_string(lane / kWarpLanes)});
    table.lines.back().resize(2 + cells, "-");
  }
  forEachCell(layout, [&](int lane, int cell, int row, int column) {
    table.lines[lane][2 + cell] = fmt::format("{},{}", row, column);
  });
  return fmt::format(
      "{}\n\nwhat lies where: row,column of the first element in "
      "{} columns, by lane, with the warp that can load it\n{}",
      layout.to_string(), kCellWords, table.to_string());
}

std::string layout_svg(const TensorLayout &layout) {
  layout.check();
  int cells = (layout.words() + kCellWords - 1) / kCellWords;
  Grid grid(layout.to_string(), kTensorLanes, cells, 50);
  for (int lane = 0; lane < kTensorLanes; ++lane)
    grid.nameLine(lane, lane);
  for (int cell = 0; cell < cells; ++cell)
    grid.nameCell(cell, std::to_string(cell * kCellWords));
  forEachCell(layout, [&](int lane, int cell, int row, int column) {
    grid.addCell(lane, cell, lane / kWarpLanes,
                 fmt::format("{},{}", row, column));
  });
  return grid.finish();
}

} // namespace kiln
