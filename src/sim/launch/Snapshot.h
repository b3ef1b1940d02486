// Snapshot: what lies in global memory, kept and put back.
#pragma once

#include "kiln/check/sim.h"
#include "sim/launch/Streams.h"
#include "sim/machine/memory/Memory.h"

namespace kiln::sim {

/// Of every region. Those that are gone when it is put back stay so, and those
/// that are new stay as they are.
std::unique_ptr<Snapshot> takeSnapshot(std::shared_ptr<GlobalMemory> memory,
                                          std::shared_ptr<Streams> streams);

} // namespace kiln::sim
