// PtxVersion: which PTX version an instruction came with.
#pragma once

#include "kiln/base/export.h"

#include <string>
#include <string_view>

namespace KILN_API kiln {

/// Versions are ten times PTX's own: 86 is PTX 8.6.
struct PtxNeed {
  int version = 0;
  std::string what = {}; ///< the instruction that needs it: "tcgen05.mma"
};

/// The newest of the instructions in `text`, PTX or the inside of an asm
/// statement. What Hopper's first version had, and what nobody knows, needs
/// version 0.
PtxNeed neededPtxVersion(std::string_view text);

} // namespace kiln
