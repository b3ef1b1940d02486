// MemorySemantics: what an instruction says of the order of its accesses.
#pragma once

#include "kiln/language/memory/scope.h"
#include "ptx/Ast.h"

#include <cstddef>
#include <cstdint>

namespace kiln::sim {

/// How far an ordering reaches: one device counts .sys as .gpu.
inline constexpr std::size_t kScopes = 3;

struct MemorySemantics {
  bool isStrong = false; ///< atom, red, relaxed, acquire, release, volatile
  bool isAcquire = false, isRelease = false, isRelaxed = false;
  bool isAtomic = false;    ///< reads, changes and writes at once
  bool isReturning = false; ///< and the thread sees what was read
  bool isHeeded = true;     ///< which decides something, or is kept
  bool isCounter = false;   ///< whoever comes at some number does more
  Scope scope = Scope::gpu;
};

/// The scope that is written, never sys, or `fallback`.
Scope scopeOf(const ptx::Instruction &instruction, Scope fallback);
/// .acquire, .release, .acq_rel, .sc and .relaxed, as they are written.
MemorySemantics writtenSemantics(const ptx::Instruction &instruction);

} // namespace kiln::sim
