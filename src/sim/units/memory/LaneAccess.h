// LaneAccess: what loads, stores and atomics do for lanes one by one.
#pragma once

#include "sim/units/memory/Access.h"

namespace kiln::sim {

/// Report addresses that were computed from bytes nobody wrote.
void checkAddress(Warp &warp, const Op &op, LaneMask active);

inline std::uint64_t addressOf(const Warp &warp, const Op &op, int lane) {
  return warp.read(op.src[0], lane) + static_cast<std::uint64_t>(op.imm);
}

/// A lane has stored `value`; unwritten bytes may not reach global memory.
void markStored(Warp &warp, const Op &op, const ByteRange &place,
                const Reg &value, std::size_t bytes, int lane);

/// Who wrote a flag, for the ledger of a deadlock.
void noteWriter(Warp &warp, const Op &op, const void *data, int lane);

} // namespace kiln::sim
