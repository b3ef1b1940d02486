// Effect: from the row of an instruction to what it does.
#include "sim/program/Effect.h"

namespace kiln::sim {

std::int64_t firstImmediate(const ptx::Instruction &instruction) {
  for (const ptx::Operand &operand : instruction.operands)
    if (operand.kind == ptx::Operand::Kind::immediate)
      return static_cast<std::int64_t>(operand.bits);
  return 0;
}

bool takeAddress(Decoder &decoder, const ptx::Instruction &instruction, int n,
                 Reg &reg, std::int64_t &offset) {
  for (const ptx::Operand &operand : instruction.operands) {
    if (operand.kind != ptx::Operand::Kind::address || n-- > 0)
      continue;
    reg = decoder.address(operand, offset);
    return true;
  }
  return false;
}

static CostClass costOf(Unit unit) {
  switch (unit) {
  case Unit::memory:
  case Unit::matrix:
    return CostClass::memory;
  case Unit::copies:
    return CostClass::tma;
  case Unit::wgmma:
  case Unit::tcgen05:
    return CostClass::wgmma;
  case Unit::barrier:
  case Unit::mbarrier:
    return CostClass::barrier;
  default:
    return CostClass::scalar;
  }
}

Effect effectOf(Decoder &decoder, const ptx::Instruction &instruction,
                const Instruction &row) {
  Effect effect;
  effect.cost = costOf(row.unit);
  effect.isAligned = instruction.has("aligned");
  if (row.traits.effect)
    row.traits.effect(decoder, instruction, effect);
  return effect;
}

} // namespace kiln::sim
