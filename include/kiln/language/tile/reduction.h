// reduction.h: how two values become one, in memory, in a warp and in a tile.
#pragma once

#include <kiln/base/export.h>

#include <cstdint>

namespace KILN_API kiln {

enum class Reduction : std::uint8_t {
  add,
  min,
  max,
  inc, ///< (x >= limit) ? 0 : x + 1; u32 in memory alone
  dec, ///< (x == 0 || x > limit) ? limit : x - 1; likewise
  bit_and,
  bit_or,
  bit_xor,
};

} // namespace kiln
