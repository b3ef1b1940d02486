// LateLoads: plain loads whose value some lanes never use.
//
// `if (i >= n && count > 0)` reads count where i >= n alone. A compiler may
// read it always and put the two answers together afterwards, read it before a
// branch of which one way has no use for it, or read a whole vector of which it
// needs a part: the value is thrown away exactly where the source would not
// have read it. Such a load counts as an access where its value is used, or
// where the thread next meets others while it may still be.
#pragma once

#include "sim/program/Program.h"

namespace kiln::sim {

/// Mark those of the function whose instructions are those from `first` on
/// (Op::isMasked, Op::late).
void markLate(const Decoder &decoder, Code &code, int first);

} // namespace kiln::sim
