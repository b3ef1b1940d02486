// Poison: what becomes of unwritten bytes that an instruction reads.
//
// What comes from them is decided by the instruction (PoisonRule); where bits
// go their own ways, the instruction itself is asked, with the bits flipped.
#pragma once

#include "sim/machine/memory/RegisterPoison.h"

namespace kiln::sim {

/// Results of an instruction may be unwritten where a source is. Called before
/// it is executed.
void passPoison(Warp &warp, const Op &op, LaneMask active);

} // namespace kiln::sim
