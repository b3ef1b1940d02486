// LaneAccess: what loads, stores and atomics share: their operands, and what they
// do for lanes one by one.
#pragma once

#include "sim/units/memory/Access.h"

namespace kiln::sim {

/// What `flags` of a memory instruction holds.
struct MemoryFlags {
  Space space;
  std::uint8_t bytes;
  bool isSigned;

  static std::uint32_t pack(Space space, int bytes, bool isSigned) {
    return static_cast<std::uint32_t>(space) | std::uint32_t(bytes) << 8 |
           std::uint32_t(isSigned) << 16;
  }
  static MemoryFlags unpack(std::uint32_t flags) {
    return {static_cast<Space>(flags & 0xff),
            static_cast<std::uint8_t>(flags >> 8 & 0xff),
            (flags >> 16 & 1) != 0};
  }
};

/// Whether elements of `bytes` are in lanes of one width that holds them.
bool isRegular(const std::vector<Reg> &list, int bytes);

/// The registers of a value or a vector. 128 bits are two of 64: `bytes` says
/// so afterwards.
std::vector<Reg> elementsOf(Decoder &decoder,
                            const ptx::Instruction &instruction,
                            const ptx::Operand &operand, int &bytes);

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
