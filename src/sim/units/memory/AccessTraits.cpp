// AccessTraits: addresses, sizes and orders of accesses.
#include "sim/units/memory/AccessTraits.h"

namespace kiln::sim {

static void describeAccess(Decoder &decoder,
                           const ptx::Instruction &instruction,
                           Effect &effect) {
  takeAddress(decoder, instruction, 0, effect.address, effect.offset);
  effect.space = spaceOf(instruction);
  for (const ptx::Operand &operand : instruction.operands)
    if (operand.kind == ptx::Operand::Kind::address)
      effect.space = decoder.spaceOfAddress(operand, effect.space);
  ptx::ScalarType type;
  for (const std::string &modifier : instruction.modifiers)
    if (ptx::parseScalarType(modifier, type))
      effect.bytes = ptx::sizeBytes(type);
  for (const char *word :
       {"acquire", "release", "relaxed", "volatile", "acq_rel", "mmio"})
    effect.isStrong |= instruction.has(word);
  effect.isStrong |= effect.kind == EffectKind::atomic;
}

void loadEffect(Decoder &decoder, const ptx::Instruction &instruction,
                Effect &effect) {
  effect.kind = EffectKind::load;
  describeAccess(decoder, instruction, effect);
}

void laneLoadEffect(Decoder &decoder, const ptx::Instruction &instruction,
                    Effect &effect) {
  loadEffect(decoder, instruction, effect);
  effect.tellOrder = tellOrderOfLoad;
}

void storeEffect(Decoder &decoder, const ptx::Instruction &instruction,
                 Effect &effect) {
  effect.kind = EffectKind::store;
  describeAccess(decoder, instruction, effect);
  // st.async and red.async tell the mbarrier that is their last operand, where
  // there is one.
  if (instruction.has("mbarrier::complete_tx::bytes")) {
    effect.kind = EffectKind::copyIn;
    takeAddress(decoder, instruction, 1, effect.barrier, effect.barrierOffset);
  }
}

void atomicEffect(Decoder &decoder, const ptx::Instruction &instruction,
                  Effect &effect) {
  if (instruction.has("mbarrier::complete_tx::bytes"))
    return storeEffect(decoder, instruction, effect);
  effect.kind = EffectKind::atomic;
  effect.isSwap = instruction.has("cas");
  describeAccess(decoder, instruction, effect);
}

MemorySemantics accessSemantics(const ptx::Instruction &instruction) {
  MemorySemantics semantics = writtenSemantics(instruction);
  bool isVolatile = instruction.has("volatile") || instruction.has("mmio");
  semantics.isStrong = isVolatile || semantics.isRelaxed ||
                       semantics.isAcquire || semantics.isRelease;
  semantics.isRelaxed |=
      semantics.isStrong && !semantics.isAcquire && !semantics.isRelease;
  semantics.scope = isVolatile ? Scope::gpu : scopeOf(instruction, Scope::gpu);
  return semantics;
}

MemorySemantics reductionSemantics(const ptx::Instruction &instruction) {
  MemorySemantics semantics = accessSemantics(instruction);
  semantics.isAtomic = semantics.isStrong = true;
  semantics.isRelaxed |= !semantics.isAcquire && !semantics.isRelease;
  return semantics;
}

MemorySemantics atomicSemantics(const ptx::Instruction &instruction) {
  MemorySemantics semantics = reductionSemantics(instruction);
  semantics.isReturning = true;
  return semantics;
}

} // namespace kiln::sim
