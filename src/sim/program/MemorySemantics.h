// MemoryOrder: what the modifiers of an instruction say of its order.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kiln::ptx {
struct Instruction;
}

namespace kiln::sim {

/// How far an ordering reaches; .sys counts as .gpu.
enum class Scope : std::uint8_t { cta, cluster, gpu };
inline constexpr std::size_t kScopes = 3;

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
