// TargetNeeds: what a kernel uses against what its module says it is for.
#pragma once

#include "ptx/Ast.h"

namespace kiln::sim {

/// Throws UserError where the module's .version does not know its .target, or
/// one of them lacks an instruction that the entry can reach: as ptxas does. A
/// module that does not say one of them lacks nothing for it.
void checkNeeds(const ptx::Module &module, const ptx::Function &entry);

} // namespace kiln::sim
