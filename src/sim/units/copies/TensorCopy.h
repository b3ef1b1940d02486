// TensorCopy: a copy through a tensor map, and what its operands say.
#pragma once

#include "sim/units/copies/TensorBox.h"

namespace kiln::sim {

/// A decoded tensor copy.
struct TensorCopy {
  /// What the coordinates name: the first element of a box, a column and four
  /// rows, or the first pixel.
  enum class Mode : std::uint8_t { box, rows, pixels };
  Mode mode = Mode::box;
  int rank = 0;
  bool isStore = false;
  bool isForPair = false; ///< .cta_group::2
  AddressOperand destination, map, barrier, source;
  Reg mask; ///< not valid: no multicast
  std::optional<ReductionKind> reduction;
  std::vector<Reg> coordinates;
  std::vector<Reg> offsets; ///< of pixels, 16 bits each
};

/// Read the map and the coordinates of one lane, with the hardware's rules.
Box readBox(Warp &warp, const Op &op, const TensorCopy &copy, int lane);

} // namespace kiln::sim
