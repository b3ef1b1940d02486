// MemoryOrder: what the modifiers of an instruction say of its order.
#pragma once

#include "sim/OrderStrand.h"

namespace kiln::ptx {
struct Instruction;
}

namespace kiln::sim {

struct MemoryOrder {
  bool isStrong = false; ///< atom, red, relaxed, acquire, release, volatile
  bool isAcquire = false, isRelease = false, isRelaxed = false;
  bool isAtomic = false;    ///< reads, changes and writes at once
  bool isReturning = false; ///< and the thread sees what was read
  Scope scope = Scope::gpu;
};

/// The order of a load, store, atomic, fence or barrier operation, with the
/// defaults of its opcode.
MemoryOrder memoryOrder(const ptx::Instruction &instruction);

} // namespace kiln::sim
