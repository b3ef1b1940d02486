// MemoryOrder: semantics and scopes from modifiers.
#include "sim/program/MemorySemantics.h"
#include "ptx/Ast.h"

namespace kiln::sim {

/// The scope that is written, or `fallback`.
static Scope scopeOf(const ptx::Instruction &instruction, Scope fallback) {
  auto is = [&](const char *word) { return instruction.has(word); };
  if (is("sys") || is("gpu") || is("gl"))
    return Scope::gpu;
  if (is("cluster"))
    return Scope::cluster;
  return is("cta") ? Scope::cta : fallback;
}

MemoryOrder memoryOrder(const ptx::Instruction &instruction) {
  const std::string &opcode = instruction.opcode;
  auto is = [&](const char *word) { return instruction.has(word); };
  bool isBoth = is("acq_rel") || is("sc");
  MemoryOrder order;
  order.isAcquire = isBoth || is("acquire");
  order.isRelease = isBoth || is("release");
  order.isRelaxed = is("relaxed");
  if (opcode == "mbarrier") {
    bool isWait = is("test_wait") || is("try_wait");
    order.isAcquire |= isWait && !order.isRelaxed;
    order.isRelease |= !isWait && !order.isRelaxed;
    order.scope = scopeOf(instruction, Scope::cta);
    return order;
  }
  if (opcode == "barrier") {
    order.isRelease |= is("arrive") && !order.isRelaxed;
    order.isAcquire |= is("wait");
    order.scope = Scope::cluster;
    return order;
  }
  if (opcode == "membar" || opcode == "fence") {
    if (opcode == "membar")
      order.isAcquire = order.isRelease = true;
    order.scope = scopeOf(instruction, Scope::gpu);
    return order;
  }
  order.isReturning = opcode == "atom";
  order.isAtomic = order.isReturning || opcode == "red";
  bool isVolatile = is("volatile") || is("mmio");
  order.isStrong = order.isAtomic || isVolatile || order.isRelaxed ||
                   order.isAcquire || order.isRelease;
  order.isRelaxed |= order.isStrong && !order.isAcquire && !order.isRelease;
  order.scope = isVolatile ? Scope::gpu : scopeOf(instruction, Scope::gpu);
  return order;
}

} // namespace kiln::sim
