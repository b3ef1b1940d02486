// Unheeded: waits for an mbarrier, and atomics, whose answer decides nothing.
//
// A test_wait or try_wait says whether a phase is over. Who does not look at
// the answer has waited for nothing, however it came out. Nor does an atomic
// whose old value nobody looks at tell anybody that it came last.
#pragma once

#include "sim/program/Program.h"

namespace kiln::sim {

/// Mark those of the function whose instructions are those from `first` on
/// (Op::isUnheeded).
void markUnheeded(const ptx::Function &function, std::vector<Op> &ops,
                  int first);

} // namespace kiln::sim
