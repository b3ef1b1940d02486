// RaceSwap: the plain load before a loop of atom.cas.
//
// The loop of CUDA's own manual begins with a plain load of the place that it
// will change: `old = *p; do { assumed = old; old = atomicCAS(p, assumed, ...)
// } while (assumed != old);`. By the PTX text that load races with the atomics
// of others. Whatever it reads, nothing comes of it unless an atom.cas finds
// the same value there: so it is de facto allowed where the value goes nowhere
// but into the operands of atom.cas at that address, by way of arithmetic, and
// into the comparison with what the atom.cas gave back; or where it is used
// behind that comparison, when the two were the same; or where it decides, as a
// maximum or a minimum does, that there is nothing to store (SwapGates).
#include "sim/checks/RaceDetector.h"
#include "sim/checks/SwapGates.h"
#include "sim/machine/Machine.h"
#include "sim/program/Effect.h"

#include <algorithm>
#include <optional>
#include <set>

namespace kiln::sim {

namespace {
/// Where the value of one load goes, register by register of the PTX.
class FirstRead {
public:
  FirstRead(const std::vector<Op> &ops, const ptx::Function &function,
            const Op &load)
      : load_(load), all_(ops.data()) {
    for (const Op &op : ops)
      if (op.origin >= function.body.data() &&
          op.origin < function.body.data() + function.body.size())
        ops_.push_back(&op);
    for (const Op *op : ops_)
      if (isSwap(*op))
        swaps_.push_back(op);
    if (swaps_.empty())
      return;
    for (const Op *op : ops_)
      if (isEndOfLoop(*op))
        ends_.push_back(op);
    hasTables_ = !function.branchTargets.empty();
  }

  /// What it is for, and the atom.cas that it may race with.
  FirstOfSwap find() {
    const ptx::Operand &result = load_.origin->operands[0];
    if (result.kind != ptx::Operand::Kind::reg || swaps_.empty())
      return {};
    gates_.emplace(all_, ops_, swaps_, load_);
    follow(result.reg);
    while (!next_.empty() && isRight_) {
      int reg = next_.back();
      next_.pop_back();
      for (const Op *op : ops_)
        look(*op, reg);
    }
    if (!isRight_ || !isCompared_)
      return {};
    if (!isGated_)
      return {.isForSwap = true};
    if (!gates_->areAllAlike())
      return {};
    return {.isForSwap = true, .others = {swaps_.begin(), swaps_.end()}};
  }

private:
  /// An atom.cas of as many bytes at the address of the load.
  bool isSwap(const Op &op) const {
    const Effect &swap = *op.effect, &load = *load_.effect;
    return swap.kind == EffectKind::atomic && swap.isSwap &&
           swap.bytes == load.bytes && swap.offset == load.offset &&
           swap.address.index == load.address.index &&
           op.origin->operands[0].reg >= 0;
  }

  /// Whether it asks if atom.cas has found what it was given.
  bool isQuestion(const Op &op) const {
    if (!op.pdst.isValid() || op.origin->operands.size() != 3)
      return false;
    int one = op.origin->operands[1].reg, other = op.origin->operands[2].reg;
    return std::any_of(swaps_.begin(), swaps_.end(), [&](const Op *swap) {
      int found = swap->origin->operands[0].reg,
          given = swap->origin->operands[2].reg;
      return found >= 0 && given >= 0 &&
             ((one == found && other == given) ||
              (one == given && other == found));
    });
  }

  /// A branch back over an atom.cas that goes by the answer.
  bool isEndOfLoop(const Op &op) const {
    if (op.target < 0 || !op.guard.isValid())
      return false;
    const Op *first = all_ + op.target;
    return std::any_of(ops_.begin(), ops_.end(), [&](const Op *question) {
      return question < &op && question >= first && isQuestion(*question) &&
             question->pdst.index == op.guard.index;
    });
  }

  /// Whether an instruction is reached only from the end of such a loop.
  bool isBehindLoop(const Op &op) const {
    auto isBetween = [](const Op *at, const Op *end, const Op *last) {
      return at > end && at <= last;
    };
    return !hasTables_ &&
           std::any_of(ends_.begin(), ends_.end(), [&](const Op *end) {
             return &op > end &&
                    std::none_of(
                        ops_.begin(), ops_.end(), [&](const Op *branch) {
                          return branch->target >= 0 &&
                                 isBetween(all_ + branch->target, end, &op) &&
                                 !isBetween(branch, end, &op);
                        });
           });
  }

  void follow(int reg) {
    if (reg >= 0 && followed_.insert(reg).second)
      next_.push_back(reg);
  }

  static bool mentions(const ptx::Operand &operand, int reg) {
    return operand.reg == reg || operand.pairedReg == reg ||
           std::any_of(operand.elements.begin(), operand.elements.end(),
                       [&](const auto &part) { return mentions(part, reg); });
  }

  /// What an instruction does with a register that is followed.
  void look(const Op &op, int reg) {
    const ptx::Instruction &origin = *op.origin;
    const auto &operands = origin.operands;
    auto isSourceAt = [&](std::size_t i) { return mentions(operands[i], reg); };
    if (&op == &load_)
      return;
    if (isSwap(op)) {
      isCompared_ |= isSourceAt(2);
      isRight_ &= !isSourceAt(1) && origin.predicate != reg;
      return;
    }
    bool isSource = origin.predicate == reg;
    for (std::size_t i = op.row->isArithmetic() ? 1 : 0; i < operands.size();
         ++i)
      isSource |= isSourceAt(i);
    if (!isSource)
      return;
    if (isQuestion(op) || isBehindLoop(op))
      return;
    if (gates_->isGate(op)) {
      isGated_ = true;
      return;
    }
    isRight_ &= op.row->isArithmetic() && origin.predicate != reg;
    if (!isRight_)
      return;
    follow(operands[0].reg);
    follow(operands[0].pairedReg);
    for (const ptx::Operand &part : operands[0].elements)
      follow(part.reg);
  }

  const Op &load_;
  const Op *all_;
  std::vector<const Op *> ops_;   ///< of the function
  std::vector<const Op *> swaps_; ///< of its atom.cas, those of the loop
  std::vector<const Op *> ends_;  ///< of such loops
  bool hasTables_ = false;        ///< of branches
  std::set<int> followed_;
  std::vector<int> next_;
  std::optional<SwapGates> gates_;
  bool isRight_ = true, isCompared_ = false, isGated_ = false;
};
} // namespace

bool RaceDetector::isFirstOfSwap(const Access &access,
                                 const Record &earlier) const {
  const Op &later = *access.op, &before = machine_.code().ops[earlier.op];
  bool isLoadLater = later.effect->kind == EffectKind::load;
  const Op &load = isLoadLater ? later : before;
  const Op &atomic = isLoadLater ? before : later;
  if (load.effect->kind != EffectKind::load || load.semantics.isStrong ||
      load.list.size() != 1 || atomic.effect->kind != EffectKind::atomic)
    return false;
  auto [known, isNew] = firstOfSwap_.try_emplace(&load);
  if (isNew)
    for (const ptx::Function &function : machine_.code().module->functions)
      if (!function.body.empty() && load.origin >= function.body.data() &&
          load.origin <= &function.body.back())
        known->second = FirstRead(machine_.code().ops, function, load).find();
  const FirstOfSwap &found = known->second;
  return found.isForSwap &&
         (found.others.empty() || found.others.contains(&atomic));
}

} // namespace kiln::sim
