// MemorySemantics: semantics and scopes from modifiers.
#include "sim/program/MemorySemantics.h"

namespace kiln::sim {

Scope scopeOf(const ptx::Instruction &instruction, Scope fallback) {
  auto is = [&](const char *word) { return instruction.has(word); };
  if (is("sys") || is("gpu") || is("gl"))
    return Scope::gpu;
  if (is("cluster"))
    return Scope::cluster;
  return is("cta") ? Scope::cta : fallback;
}

MemorySemantics writtenSemantics(const ptx::Instruction &instruction) {
  auto is = [&](const char *word) { return instruction.has(word); };
  bool isBoth = is("acq_rel") || is("sc");
  MemorySemantics semantics;
  semantics.isAcquire = isBoth || is("acquire");
  semantics.isRelease = isBoth || is("release");
  semantics.isRelaxed = is("relaxed");
  return semantics;
}

} // namespace kiln::sim
