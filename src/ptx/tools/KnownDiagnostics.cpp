// KnownDiagnostics: the table of ptxas' numbered messages that we understand.
//
// Only what has been seen and understood is here. For an id that is not in the
// table the user reads ptxas' own words and nothing else. Causes are written
// for who writes the kernel: PTX words, and what to change.
#include "ptx/tools/Diagnostics.h"

#include <algorithm>

namespace kiln {

static constexpr KnownDiagnostic kKnownDiagnostics[] = {
    {"C7504",
     "The PTX is assembled for later linking, where another unit may need more "
     "registers. Assemble the whole program at once (no -c).",
     "setmaxnreg"},
    {"C7505",
     "Debug code is asked for, by -g or by a .target that says `debug`. Emit "
     "line directives only, without a debug target.",
     "setmaxnreg"},
    {"C7507",
     "Some value is live that does not fit into the smaller number of "
     "registers. Raise that warpgroup's count, or keep large values (an "
     "accumulator) out of the code that runs with it.",
     "setmaxnreg"},
    {"C7508",
     "Without the size of the CTA ptxas cannot know how many registers a "
     "thread starts with. Give the entry .reqntid or .maxntid, and "
     ".minnctapersm 1; the CTA must be small enough for setmaxnreg to have "
     "registers to move.",
     "setmaxnreg"},
    {"C7509",
     "A call to a function of another unit may use any register, so no wgmma "
     "can be in flight across it. Define the function in the same module.",
     "wgmma.mma_async"},
    {"C7510",
     "A wgmma is in flight at a call or at a return. Inline the function, or "
     "wait for the group before the call.",
     "wgmma.mma_async"},
    {"C7511",
     "The accumulators in flight do not fit into a thread's registers (255 at "
     "most), or the code is not optimised (-O0, -g, a `debug` target). Use a "
     "smaller tile, or share the tile among more warpgroups.",
     "wgmma.mma_async"},
    {"C7513",
     "A register with wgmma's A operand is written while a wgmma may still "
     "read it. Write it before wgmma.fence or after the wait, or pass A "
     "through shared memory.",
     "wgmma.mma_async"},
    {"C7514",
     "An accumulator is read, or copied into another register, before its "
     "group has been waited for. Wait first; an accumulator in flight must not "
     "be carried round a loop by any chain of values but its own: issue and "
     "wait within one loop body.",
     "wgmma.mma_async"},
    {"C7515",
     "An accumulator is written between the first wgmma of a group and the "
     "wait. Set it before wgmma.fence; to start from zero use scale-d = 0 in "
     "the first wgmma instead.",
     "wgmma.mma_async"},
    {"C7517",
     "A result of wgmma is used before any wait for it, so ptxas waits there "
     "for everything in flight. Put wgmma.wait_group before the first use, and "
     "tie the accumulators to it so that no use can move above it.",
     ""},
    {"C7519",
     "wgmma is given registers that were written after the last wgmma.fence. "
     "Put wgmma.fence after the last write and before the first wgmma.",
     ""},
    {"C7520",
     "wgmma without a wgmma.fence of its own stands behind a branch that "
     "threads of one warp might take differently. Put the fence in the same "
     "path, and branch on a value that is the same for the whole warp (take "
     "the warpgroup's index through shfl.sync).",
     "wgmma.mma_async"},
    {"C7600",
     "Not even spilling makes the code fit into the registers a thread may "
     "have. Lower .maxntid or .minnctapersm, raise .maxnreg, or use a smaller "
     "tile.",
     ""},
    {"C7602",
     "One instruction needs more registers at once than a thread may have. "
     "Lower .maxntid or .minnctapersm, raise .maxnreg, or use a smaller wgmma "
     "shape.",
     ""},
};

std::span<const KnownDiagnostic> knownDiagnostics() {
  return kKnownDiagnostics;
}

const KnownDiagnostic *findKnownDiagnostic(std::string_view id) {
  const KnownDiagnostic *row = std::find_if(
      std::begin(kKnownDiagnostics), std::end(kKnownDiagnostics),
      [&](const KnownDiagnostic &known) { return known.id == id; });
  return row == std::end(kKnownDiagnostics) ? nullptr : row;
}

} // namespace kiln
