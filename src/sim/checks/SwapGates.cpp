// SwapGates: comparisons before atom.cas, and the ways past them.
#include "sim/checks/SwapGates.h"
#include "sim/program/Effect.h"

#include <algorithm>

namespace kiln::sim {

static bool isIn(const std::set<int> &registers, const ptx::Operand &operand) {
  return operand.reg >= 0 && registers.contains(operand.reg);
}

SwapGates::SwapGates(const Op *all, const std::vector<const Op *> &ops,
                     const std::vector<const Op *> &swaps, const Op &load)
    : all_(all), ops_(ops), swaps_(swaps), load_(load) {
  read_.insert(load.origin->operands[0].reg);
  for (const Op *swap : swaps)
    if (int found = swap->origin->operands[0].reg; found >= 0)
      read_.insert(found);
  findCopies(read_, false);
  if (int stored = swaps.front()->origin->operands[3].reg; stored >= 0)
    stored_.insert(stored);
  findCopies(stored_, true);
  bool isOneValue =
      std::all_of(swaps.begin(), swaps.end(), [&](const Op *swap) {
        return isIn(stored_, swap->origin->operands[3]);
      });
  bool isApart = std::none_of(stored_.begin(), stored_.end(),
                              [&](int reg) { return read_.contains(reg); });
  if (!isOneValue || !isApart)
    return;
  for (const Op *op : ops)
    if (isComparison(*op) && isForBranches(*op))
      gates_.insert(op);
}

/// Add what the registers are moved to, and what is moved to them.
void SwapGates::findCopies(std::set<int> &registers, bool isBackwards) const {
  for (bool isMore = true; isMore;) {
    isMore = false;
    for (const Op *op : ops_) {
      const auto &operands = op->origin->operands;
      if (op->origin->opcode != "mov" || operands.size() != 2 ||
          operands[0].reg < 0 || operands[1].reg < 0)
        continue;
      if (isIn(registers, operands[1]))
        isMore |= registers.insert(operands[0].reg).second;
      if (isBackwards && isIn(registers, operands[0]))
        isMore |= registers.insert(operands[1].reg).second;
    }
  }
}

/// 1: greater, -1: less, 0: neither.
static int orderOf(const ptx::Instruction &instruction) {
  for (const char *word : {"gt", "ge", "gtu", "geu", "hi", "hs"})
    if (instruction.has(word))
      return 1;
  for (const char *word : {"lt", "le", "ltu", "leu", "lo", "ls"})
    if (instruction.has(word))
      return -1;
  return 0;
}

bool SwapGates::isComparison(const Op &op) const {
  const auto &operands = op.origin->operands;
  if (!op.pdst.isValid() || op.pdst2.isValid() || op.guard.isValid() ||
      operands.size() != 3 || orderOf(*op.origin) == 0)
    return false;
  return (isIn(read_, operands[1]) && isIn(stored_, operands[2])) ||
         (isIn(stored_, operands[1]) && isIn(read_, operands[2]));
}

bool SwapGates::isForBranches(const Op &gate) const {
  int answer = gate.origin->operands[0].reg;
  return std::all_of(ops_.begin(), ops_.end(), [&](const Op *op) {
    const ptx::Instruction &origin = *op->origin;
    bool isOperand = std::any_of(origin.operands.begin(), origin.operands.end(),
                                 [&](const ptx::Operand &operand) {
                                   return operand.reg == answer ||
                                          operand.pairedReg == answer;
                                 });
    return op == &gate ||
           (!isOperand && (origin.predicate != answer || op->target >= 0));
  });
}

const Op *SwapGates::gateOf(const Op &branch) const {
  if (branch.target < 0 || !branch.guard.isValid())
    return nullptr;
  auto found = std::find_if(gates_.begin(), gates_.end(), [&](const Op *gate) {
    return gate->pdst.index == branch.guard.index;
  });
  return found == gates_.end() ? nullptr : *found;
}

std::size_t SwapGates::indexOf(const Op &op) const {
  return static_cast<std::size_t>(&op - ops_.front());
}

bool SwapGates::leadsToSwap(std::size_t from) const {
  std::set<std::size_t> seen;
  std::vector<std::size_t> next = {from};
  while (!next.empty()) {
    std::size_t i = next.back();
    next.pop_back();
    if (i >= ops_.size() || !seen.insert(i).second || ops_[i] == &load_)
      continue;
    const Op &op = *ops_[i];
    if (std::find(swaps_.begin(), swaps_.end(), &op) != swaps_.end())
      return true;
    if (gateOf(op))
      continue;
    Flow flow = op.row->traits.flow;
    if (op.target >= 0)
      next.push_back(indexOf(all_[op.target]));
    if (flow == Flow::next || op.guard.isValid())
      next.push_back(i + 1);
  }
  return false;
}

int SwapGates::direction(const Op &branch, const Op &gate) const {
  bool isTaken = leadsToSwap(indexOf(all_[branch.target]));
  if (isTaken == leadsToSwap(indexOf(branch) + 1))
    return 0;
  int order = orderOf(*gate.origin);
  bool isStoredFirst = isIn(stored_, gate.origin->operands[1]);
  bool isWhereTrue = isTaken != branch.guard.isNegated;
  return order * (isStoredFirst ? 1 : -1) * (isWhereTrue ? 1 : -1);
}

bool SwapGates::areAllAlike() const {
  if (leadsToSwap(indexOf(load_) + 1))
    return false;
  for (const Op *swap : swaps_)
    if (leadsToSwap(indexOf(*swap) + 1))
      return false;
  int all = 0;
  for (const Op *op : ops_)
    if (const Op *gate = gateOf(*op)) {
      int one = direction(*op, *gate);
      if (one == 0 || (all && one != all))
        return false;
      all = one;
    }
  return all != 0;
}

} // namespace kiln::sim
