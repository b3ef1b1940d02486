// Unheeded: what the registers of a function are good for, from the end back.
//
// A register counts as looked at where something other than arithmetic reads
// it, or arithmetic whose result is looked at. Paths are not told apart.
#include "sim/program/flow/Unheeded.h"
#include "sim/program/Effect.h"

#include <algorithm>

namespace kiln::sim {

/// Call `body(register)` for the registers of an operand.
template <typename Body>
static void forEachRegister(const ptx::Operand &operand, Body &&body) {
  for (int reg : {operand.reg, operand.pairedReg})
    if (reg >= 0)
      body(reg);
  for (const ptx::Operand &element : operand.elements)
    forEachRegister(element, body);
}

/// Atomics that count threads or CTAs, of which the one that gets some number
/// does more than the others: atom.inc, and those whose answer, or a sum of it,
/// is compared for equality. The answer of atom.cas tells what was there.
static void markCounters(std::vector<Op> &ops, int first, std::size_t count) {
  auto isCandidate = [](const Op &op) {
    return op.semantics.isReturning && !op.effect->isSwap;
  };
  if (std::none_of(ops.begin() + first, ops.end(), isCandidate))
    return;
  std::vector<bool> isAsked(count, false);
  auto isOne = [&](const ptx::Operand &operand) {
    return operand.reg >= 0 && isAsked[static_cast<std::size_t>(operand.reg)];
  };
  // From the end back: what is added to comes before it is compared.
  for (std::size_t i = ops.size(); i-- > static_cast<std::size_t>(first);) {
    Op &op = ops[i];
    const ptx::Instruction &origin = *op.origin;
    const auto &operands = origin.operands;
    bool isComparison = op.pdst.isValid() && op.row->isArithmetic() &&
                        (origin.has("eq") || origin.has("ne"));
    bool isSum = op.dst.isValid() && op.row->isArithmetic() &&
                 !operands.empty() && isOne(operands[0]);
    for (std::size_t n = 1; (isComparison || isSum) && n < operands.size(); ++n)
      if (operands[n].reg >= 0)
        isAsked[static_cast<std::size_t>(operands[n].reg)] = true;
    if (isCandidate(op))
      op.semantics.isCounter =
          origin.has("inc") || (!operands.empty() && isOne(operands[0]));
  }
}

void markUnheeded(const ptx::Function &function, std::vector<Op> &ops,
                  int first) {
  auto isAsking = [](const Op &op) {
    return op.effect->kind == EffectKind::barrierWait ||
           op.semantics.isReturning;
  };
  if (std::none_of(ops.begin() + first, ops.end(), isAsking))
    return;
  std::size_t count = function.registers.size();
  std::vector<bool> isRead(count, false);
  std::vector<int> next; ///< registers whose writers are to be followed
  std::vector<std::vector<const Op *>> writers(count);
  auto look = [&](int reg) {
    if (!isRead[reg])
      next.push_back(reg);
    isRead[reg] = true;
  };
  auto lookAtSources = [&](const Op &op) {
    const ptx::Instruction &origin = *op.origin;
    if (origin.predicate >= 0)
      look(origin.predicate);
    for (std::size_t i = 1; i < origin.operands.size(); ++i)
      forEachRegister(origin.operands[i], look);
  };
  for (std::size_t i = first; i < ops.size(); ++i) {
    const Op &op = ops[i];
    if (op.origin->operands.empty()) {
      lookAtSources(op);
      continue;
    }
    const ptx::Operand &result = op.origin->operands[0];
    if (op.row->isArithmetic()) {
      forEachRegister(result, [&](int reg) { writers[reg].push_back(&op); });
      continue;
    }
    lookAtSources(op);
    if (!isAsking(op))
      forEachRegister(result, look);
  }
  while (!next.empty()) {
    int reg = next.back();
    next.pop_back();
    for (const Op *writer : writers[reg])
      lookAtSources(*writer);
  }
  markCounters(ops, first, count);
  for (std::size_t i = first; i < ops.size(); ++i)
    if (isAsking(ops[i])) {
      bool isHeeded = false;
      forEachRegister(ops[i].origin->operands[0],
                      [&](int reg) { isHeeded |= isRead[reg]; });
      ops[i].isUnheeded = !isHeeded;
      ops[i].semantics.isHeeded = isHeeded;
    }
}

} // namespace kiln::sim
