// AccessTraits: what loads, stores and atomics are to others.
#pragma once

#include "sim/program/Effect.h"

namespace kiln::sim {

/// Tell the order of accesses of what a load has read.
void tellOrderOfLoad(Warp &warp, const Op &op, LaneMask lanes,
                     std::uint32_t elements);
/// Effects of a load, a store and an atomic.
void loadEffect(Decoder &decoder, const ptx::Instruction &instruction,
                Effect &effect);
/// Of ld: each lane reads by itself, and its order may be told later.
void laneLoadEffect(Decoder &decoder, const ptx::Instruction &instruction,
                    Effect &effect);
void storeEffect(Decoder &decoder, const ptx::Instruction &instruction,
                 Effect &effect);
void atomicEffect(Decoder &decoder, const ptx::Instruction &instruction,
                  Effect &effect);

/// Of loads, stores and copies; the same for those that change memory at once,
/// and for those that tell what was there.
MemorySemantics accessSemantics(const ptx::Instruction &instruction);
MemorySemantics reductionSemantics(const ptx::Instruction &instruction);
MemorySemantics atomicSemantics(const ptx::Instruction &instruction);

} // namespace kiln::sim
