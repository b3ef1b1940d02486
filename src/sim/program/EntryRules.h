// EntryRules: what an entry's directives and its module say about a launch.
#pragma once

#include "kiln/run/device.h"
#include "ptx/Ast.h"
#include "sim/program/Lanes.h"

namespace kiln::sim {

/// The threads of a CTA that a directive names (reqntid, maxntid); 1 where it
/// is not there.
std::uint64_t threadsOf(const ptx::Function &entry, const char *directive);

/// The cluster that the entry requires, or else the one it is launched with.
/// Throws UserError where there are two.
Dim3 clusterOf(const ptx::Function &entry, const Dim3 &launched);

/// Throws UserError for another block than the entry was compiled for, as the
/// driver does.
void checkBlock(const ptx::Function &entry, const Dim3 &block);

/// A warning about PTX of a version that is newer than what is known here.
std::optional<Finding> checkVersion(const ptx::Module &module);

} // namespace kiln::sim
