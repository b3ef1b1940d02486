// MaskedLoads: within straight code alone, where nothing but arithmetic and
// plain loads stands between a load and what decides about its value.
#include "sim/program/flow/MaskedLoads.h"
#include "sim/program/Effect.h"

#include <algorithm>

namespace kiln::sim {

/// So far behind a load its use is looked for: compilers put it close, and a
/// long program is read in a moment.
static constexpr std::size_t kFarthest = 256;

namespace {
class MaskedLoads {
public:
  MaskedLoads(const Decoder &decoder, Code &code, int first)
      : decoder_(decoder), code_(code), ops_(code.ops), first_(first),
        mentions_(decoder.function().registers.size()),
        isTarget_(code.ops.size() + 1) {
    const std::vector<Op> &ops = code.ops;
    for (std::size_t i = first; i < ops.size(); ++i) {
      countRegisters(*ops[i].origin);
      if (ops[i].target >= 0)
        isTarget_[static_cast<std::size_t>(ops[i].target)] = true;
    }
    for (const auto &[name, targets] : decoder.function().branchTargets)
      for (int target : targets)
        isTarget_[static_cast<std::size_t>(first + target)] = true;
  }

  void mark() {
    for (std::size_t i = first_; i < ops_.size(); ++i)
      if (isPlainLoad(ops_[i]) && !ops_[i].guard.isValid() &&
          ops_[i].list.size() == 1)
        follow(i);
  }

private:
  static bool isPlainLoad(const Op &op) {
    return op.effect->kind == EffectKind::load && !op.semantics.isStrong;
  }

  static void collect(const ptx::Operand &operand, std::vector<int> &into) {
    for (int reg : {operand.reg, operand.pairedReg})
      if (reg >= 0)
        into.push_back(reg);
    for (const ptx::Operand &element : operand.elements)
      collect(element, into);
  }

  /// How many instructions have a register.
  void countRegisters(const ptx::Instruction &instruction) {
    std::vector<int> found;
    if (instruction.predicate >= 0)
      found.push_back(instruction.predicate);
    for (const ptx::Operand &operand : instruction.operands)
      collect(operand, found);
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    for (int reg : found)
      ++mentions_[static_cast<std::size_t>(reg)];
  }

  /// The one instruction behind `from`, in straight code, that reads a register
  /// which nobody else has; 0: there is none.
  std::size_t onlyUse(std::size_t from, int reg, std::size_t load) const {
    if (reg < 0 || mentions_[static_cast<std::size_t>(reg)] != 2)
      return 0;
    std::size_t last = std::min(ops_.size(), from + kFarthest);
    for (std::size_t i = from + 1; i < last && !isTarget_[i]; ++i) {
      const Op &op = ops_[i];
      if (!op.row->isArithmetic() && !isPlainLoad(op))
        return 0;
      const auto &operands = op.origin->operands;
      bool isUse = std::any_of(
          operands.begin() + 1, operands.end(),
          [&](const ptx::Operand &operand) { return operand.reg == reg; });
      if (isUse)
        return op.row->isArithmetic() && !op.guard.isValid() ? i : 0;
      // The address is asked for again.
      const Reg &address = ops_[load].src[0];
      for (const Reg &written : {op.dst, op.dst2})
        if (written.isValid() && written.index == address.index)
          return 0;
      if (op.isListWritten &&
          std::any_of(op.list.begin(), op.list.end(), [&](const Reg &written) {
            return written.index == address.index;
          }))
        return 0;
    }
    return 0;
  }

  Pred predOf(const ptx::Operand &operand) const {
    Pred pred = decoder_.predOfRegister(operand.reg);
    pred.isNegated = operand.isNegated;
    return pred;
  }

  void decide(std::size_t load, std::size_t by, Pred mask, bool isUsedWhere) {
    if (!mask.isValid() || ops_[by].masks >= 0)
      return;
    ops_[by].masks = static_cast<std::int32_t>(code_.maskedLoads.size());
    code_.maskedLoads.push_back({static_cast<int>(load), mask, isUsedWhere});
    ops_[load].isMasked = true;
  }

  void follow(std::size_t load) {
    using Join = PoisonRule::Join;
    std::size_t use = onlyUse(load, ops_[load].origin->operands[0].reg, load);
    if (!use)
      return;
    const Op &first = ops_[use];
    const auto &operands = first.origin->operands;
    int value = ops_[load].origin->operands[0].reg;
    Join join = first.poison.join;
    if (join == Join::choice) {
      bool isFirst = operands[1].reg == value,
           isSecond = operands[2].reg == value;
      if (isFirst != isSecond)
        decide(load, use, first.psrc, isFirst);
      return;
    }
    if (!first.pdst.isValid() || first.pdst2.isValid() ||
        operands[0].pairedReg >= 0)
      return;
    if (first.psrc.isValid()) {
      if (join != Join::other)
        decide(load, use, first.psrc, join == Join::conjunction);
      return;
    }
    int answer = operands[0].reg;
    std::size_t both = onlyUse(use, answer, load);
    if (!both || ops_[both].poison.join == Join::other ||
        ops_[both].poison.join == Join::choice)
      return;
    const auto &joined = ops_[both].origin->operands;
    // and.pred and or.pred; a comparison has its predicate last.
    const ptx::Operand &other =
        joined[joined[1].reg == answer ? joined.size() - 1 : 1];
    bool isOfPredicates = joined.size() == 3;
    if (isOfPredicates && other.reg != answer)
      decide(load, both, predOf(other),
             ops_[both].poison.join == Join::conjunction);
  }

  const Decoder &decoder_;
  Code &code_;
  std::vector<Op> &ops_;
  std::size_t first_;
  std::vector<int> mentions_; ///< per register of the function
  std::vector<bool> isTarget_;
};
} // namespace

void markMasked(const Decoder &decoder, Code &code, int first) {
  MaskedLoads(decoder, code, first).mark();
}

} // namespace kiln::sim
