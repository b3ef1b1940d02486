// Diagnostics: what ptxas says, as data.
//
// ptxas writes lines of a few forms and means different things by them:
//
//     ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ...
//     ptxas kernel.ptx, line 12; error   : Unknown symbol 'foo'
//     ptxas fatal   : Ptx assembly aborted due to errors
//     ptxas info    : Compiling entry function 'gemm' for 'sm_90a'
//     ptxas info    : Function properties for gemm
//         0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
//     ptxas info    : Used 168 registers, used 4 barriers, 1024 bytes smem
//
// The last four are counts; everything else is a message for the user, and is
// told with its place in the kernel's source and, where we know it, with its
// cause.
#pragma once

#include "kiln/run/assemble.h"

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

/// What is known of one of ptxas' numbered messages.
struct KnownDiagnostic {
  const char *id;
  const char *cause;       ///< why it happens and what to do
  const char *instruction; ///< what it speaks of; empty where it gives a line
};

std::span<const KnownDiagnostic> knownDiagnostics();
/// The row of an id, or null.
const KnownDiagnostic *findKnownDiagnostic(std::string_view id);

/// All that ptxas said.
struct PtxasOutput {
  std::vector<AssembleDiagnostic> diagnostics;
  std::map<std::string, ResourceUse> resources; ///< by function
};

/// Read ptxas' output; source lines come from the PTX it was given.
PtxasOutput parsePtxasOutput(std::string_view output, std::string_view ptx);

/// Did ptxas refuse the PTX with this message?
bool isRefusal(const AssembleDiagnostic &diagnostic);
/// Does this message say that the kernel will be slower than it was written
/// to be? Those are the C75xx.
bool isSlowdown(const AssembleDiagnostic &diagnostic);

} // namespace kiln
