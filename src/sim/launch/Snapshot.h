// Snapshot: what lies in global memory, kept and put back.
#pragma once

#include "kiln/sim.h"
#include "sim/machine/Memory.h"

namespace kiln::sim {

/// Of every region that can be written. Regions that are gone when it is put
/// back stay so, and those that are new stay as they are.
std::unique_ptr<SimSnapshot> takeSnapshot(std::shared_ptr<GlobalMemory> memory);

} // namespace kiln::sim
