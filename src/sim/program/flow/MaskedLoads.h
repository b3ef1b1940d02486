// MaskedLoads: plain loads whose value a predicate may throw away.
//
// `if (i >= n && count > 0)` reads count where i >= n alone. A compiler may
// read it always and put the two answers together afterwards: the value is
// thrown away exactly where the source would not have read it. Such a load
// counts as an access where its value is used, in the instruction that decides.
#pragma once

#include "sim/program/Program.h"

namespace kiln::sim {

/// Mark those of the function whose instructions are those from `first` on
/// (Op::isMasked, Op::masks).
void markMasked(const Decoder &decoder, Code &code, int first);

} // namespace kiln::sim
