// LayoutModes: counting in the modes of a register layout.
#pragma once

#include "kiln/base/export.h"
#include "kiln/language/tile/layout.h"

namespace KILN_API kiln {

/// How many threads or registers the modes count.
inline int countOf(const std::vector<LayoutMode> &modes) {
  int total = 1;
  for (const LayoutMode &mode : modes)
    total *= mode.extent;
  return total;
}

/// Move `element` by the digits of `number`.
inline void addDigits(const std::vector<LayoutMode> &modes, int number,
                      TileElement &element) {
  for (const LayoutMode &mode : modes) {
    int digit = number % mode.extent;
    number /= mode.extent;
    element.row += digit * mode.row;
    element.column += digit * mode.column;
  }
}

} // namespace kiln
