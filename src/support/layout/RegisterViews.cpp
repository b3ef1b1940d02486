// RegisterViews: a register layout seen in another way: transposed, reshaped,
// in part, by its rows.
#include "kiln/language/tile/layout.h"
#include "support/Error.h"
#include "support/layout/LayoutModes.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace kiln {

RegisterLayout RegisterLayout::transpose(Where where) const {
  auto swapped = [](std::vector<LayoutMode> modes) {
    for (LayoutMode &mode : modes)
      std::swap(mode.row, mode.column);
    return modes;
  };
  return RegisterLayout(name_ + " transposed", columns_, rows_,
                        swapped(threads_), swapped(registers_), where);
}

/// The steps of `modes` in rows of `to` elements instead of `from`; a mode that
/// begins inside a row and leaves it becomes two.
static std::vector<LayoutMode> relabelled(const std::vector<LayoutMode> &modes,
                                          int from, int to) {
  std::vector<LayoutMode> out;
  for (const LayoutMode &mode : modes) {
    int step = mode.row * from + mode.column;
    int inside = mode.extent;
    if (step && step < to && step * mode.extent > to && to % step == 0)
      inside = to / step;
    out.push_back({inside, step / to, step % to});
    if (inside != mode.extent)
      out.push_back({mode.extent / inside, step * inside / to, 0});
  }
  return out;
}

RegisterLayout RegisterLayout::reshape(int rows, int columns,
                                       Where where) const {
  if (rows < 1 || columns < 1 ||
      std::int64_t(rows) * columns != std::int64_t(rows_) * columns_)
    userErrorAt(where,
                "a tile of {}x{} cannot be seen as one of {}x{}: the "
                "number of elements differs",
                rows_, columns_, rows, columns);
  std::vector<LayoutMode> byThread = relabelled(threads_, columns_, columns);
  std::vector<LayoutMode> byRegister =
      relabelled(registers_, columns_, columns);
  auto refuse = [&] {
    userErrorAt(where,
                "{} cannot be seen as a tile of {}x{}: its pieces cross the "
                "ends of the new rows",
                to_string(), rows, columns);
  };
  if (countOf(byThread) != threads() || countOf(byRegister) != registers())
    refuse();
  // The steps alone do not tell where sums leave a row; the elements do.
  for (int thread = 0; thread < threads(); ++thread)
    for (int reg = 0; reg < registers(); ++reg) {
      TileElement old = element(thread, reg), now;
      addDigits(byThread, thread, now);
      addDigits(byRegister, reg, now);
      int index = old.row * columns_ + old.column;
      if (now != TileElement{index / columns, index % columns})
        refuse();
    }
  return RegisterLayout(name_ + " reshaped", rows, columns, byThread,
                        byRegister, where);
}

namespace {
/// A tile's part, in rows and columns of the whole.
struct Part {
  int row, column, rows, columns;

  bool holds(const TileElement &at) const {
    return at.row >= row && at.row < row + rows && at.column >= column &&
           at.column < column + columns;
  }
};
} // namespace

/// The registers that hold elements of the part, in thread after thread the
/// same ones; empty where they are not.
static std::vector<int> registersOf(const RegisterLayout &layout,
                                    const Part &part) {
  std::vector<int> registers;
  for (int reg = 0; reg < layout.registers(); ++reg) {
    bool isHeld = part.holds(layout.element(0, reg));
    for (int thread = 1; thread < layout.threads(); ++thread)
      if (part.holds(layout.element(thread, reg)) != isHeld)
        return {};
    if (isHeld)
      registers.push_back(reg);
  }
  return registers;
}

RegisterSlice RegisterLayout::slice(int row, int column, int rows, int columns,
                                    Where where) const {
  if (row < 0 || column < 0 || rows < 1 || columns < 1 || row + rows > rows_ ||
      column + columns > columns_)
    userErrorAt(where,
                "a slice of {}x{} from ({}, {}) leaves its tile of {}x{}", rows,
                columns, row, column, rows_, columns_);
  std::vector<int> kept = registersOf(*this, {row, column, rows, columns});
  // Of each mode a range of digits remains.
  std::vector<LayoutMode> modes = registers_;
  int faster = 1;
  for (LayoutMode &mode : modes) {
    int least = mode.extent, most = -1;
    for (int reg : kept) {
      least = std::min(least, reg / faster % mode.extent);
      most = std::max(most, reg / faster % mode.extent);
    }
    faster *= mode.extent;
    mode.extent = most - least + 1;
  }
  if (kept.empty() || countOf(modes) != static_cast<int>(kept.size()))
    userErrorAt(where,
                "the slice of {}x{} from ({}, {}) cuts through registers of "
                "{}: every thread must hold a part of it, in the same "
                "registers",
                rows, columns, row, column, to_string());
  return {
      RegisterLayout(name_ + " slice", rows, columns, threads_, modes, where),
      kept};
}

RegisterLayout RegisterLayout::per_row(Where where) const {
  std::vector<LayoutMode> byThread = threads_, byRegister;
  for (LayoutMode &mode : byThread)
    mode.column = 0;
  for (const LayoutMode &mode : registers_)
    if (mode.row)
      byRegister.push_back({mode.extent, mode.row, 0});
  return RegisterLayout(name_ + " rows", rows_, 1, byThread, byRegister, where);
}

std::vector<int>
RegisterLayout::registers_for(const RegisterLayout &tile) const {
  if (*this == tile) {
    std::vector<int> same(registers());
    std::iota(same.begin(), same.end(), 0);
    return same;
  }
  if (threads() != tile.threads() || (rows_ != 1 && rows_ != tile.rows_) ||
      (columns_ != 1 && columns_ != tile.columns_))
    return {};
  auto mine = [&](const TileElement &at) -> TileElement {
    return {rows_ == 1 ? 0 : at.row, columns_ == 1 ? 0 : at.column};
  };
  std::map<std::pair<int, int>, int> ofThread0;
  for (int reg = 0; reg < registers(); ++reg) {
    TileElement at = element(0, reg);
    ofThread0[{at.row, at.column}] = reg;
  }
  std::vector<int> result;
  for (int reg = 0; reg < tile.registers(); ++reg) {
    TileElement wanted = mine(tile.element(0, reg));
    auto found = ofThread0.find({wanted.row, wanted.column});
    if (found == ofThread0.end())
      return {};
    for (int thread = 1; thread < threads(); ++thread)
      if (element(thread, found->second) != mine(tile.element(thread, reg)))
        return {};
    result.push_back(found->second);
  }
  return result;
}

} // namespace kiln
