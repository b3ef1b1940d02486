// ControlFlow: where the paths of a branch meet again.
#pragma once

#include "sim/program/InstructionSet.h"

#include <vector>

namespace kiln::sim {

/// For each instruction, the index of the first instruction that every path
/// from it to the end passes through (its immediate post-dominator); -1 where
/// there is none but the end.
std::vector<int>
immediatePostDominators(const ptx::Function &function,
                        const std::vector<const Instruction *> &rows);

} // namespace kiln::sim
