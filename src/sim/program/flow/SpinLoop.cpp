// SpinLoop: the backward slice of a loop's branches and addresses.
//
// A loop's slice costs as much as the loop is long, and loops nest: the
// shortest are taken first, and where they nest deeper than any compiler's
// code, the longest are left out. Those end by the limits of a launch.
#include "sim/program/flow/SpinLoop.h"
#include "sim/program/Effect.h"

#include <algorithm>

namespace kiln::sim {

/// Loops around an instruction that are looked at, on average.
static constexpr std::size_t kMaxDepth = 64;

namespace {

/// Registers of the AST that an instruction writes and reads.
struct Uses {
  std::vector<int> written, read;
};

/// The loops of one function.
class SpinLoops {
public:
  SpinLoops(Decoder &decoder, std::vector<Op> &ops, int first)
      : decoder_(decoder), ops_(ops), first_(first) {
    std::size_t registers = decoder.function().registers.size();
    writers_.resize(registers);
    writtenIn_.assign(registers, -1);
    decidesIn_.assign(registers, -1);
    followedIn_.assign(ops.size() - first, -1);
    pollsBefore_.push_back(0);
    for (std::size_t i = first; i < ops.size(); ++i)
      pollsBefore_.push_back(pollsBefore_.back() + ops[i].effect->isPoll());
  }

  void add() {
    std::vector<int> branches;
    for (int i = first_; i < static_cast<int>(ops_.size()); ++i)
      if (isWait(i))
        branches.push_back(i);
    auto length = [&](int branch) { return branch - ops_[branch].target; };
    std::stable_sort(branches.begin(), branches.end(),
                     [&](int a, int b) { return length(a) < length(b); });
    std::size_t budget = kMaxDepth * (ops_.size() - first_);
    for (int branch : branches) {
      auto cost = static_cast<std::size_t>(length(branch)) + 1;
      if (cost > budget)
        return;
      budget -= cost;
      ops_[branch].spin = loopOf(branch);
    }
  }

private:
  /// A branch backwards, over something that is waited for?
  bool isWait(int branch) const {
    int target = ops_[branch].target;
    return target >= first_ && target <= branch &&
           pollsBefore_[branch + 1 - first_] > pollsBefore_[target - first_];
  }

  const Uses &usesOf(int i) {
    if (uses_.empty())
      uses_.resize(ops_.size() - first_);
    Uses &uses = uses_[i - first_];
    if (!uses.read.empty() || !uses.written.empty())
      return uses;
    const ptx::Instruction &instruction = *ops_[i].origin;
    if (instruction.predicate >= 0)
      uses.read.push_back(instruction.predicate);
    for (std::size_t n = 0; n < instruction.operands.size(); ++n) {
      const ptx::Operand &operand = instruction.operands[n];
      bool isResult = n == 0 && operand.kind != ptx::Operand::Kind::address;
      collect(operand, isResult ? uses.written : uses.read);
    }
    return uses;
  }

  static void collect(const ptx::Operand &operand, std::vector<int> &into) {
    if (operand.reg >= 0)
      into.push_back(operand.reg);
    if (operand.pairedReg >= 0)
      into.push_back(operand.pairedReg);
    for (const ptx::Operand &element : operand.elements)
      collect(element, into);
  }

  void decide(int reg) {
    if (decidesIn_[reg] == branch_)
      return;
    decidesIn_[reg] = branch_;
    deciding_.push_back(reg);
  }

  /// Who writes what in the loop, and what its branches and polls read.
  void readLoop(int first) {
    for (int i = first; i <= branch_; ++i) {
      const Op &op = ops_[i];
      const Uses &uses = usesOf(i);
      if (op.origin->predicate >= 0)
        decide(op.origin->predicate);
      if (op.effect->isPoll() || op.row->traits.flow == Flow::branchTable)
        for (int reg : uses.read)
          decide(reg);
      for (int reg : uses.written) {
        if (writtenIn_[reg] != branch_)
          writers_[reg].clear();
        writtenIn_[reg] = branch_;
        writers_[reg].push_back(i);
      }
    }
  }

  /// What decides about a register decides about what it decides.
  void followWriters() {
    for (std::size_t next = 0; next < deciding_.size();) {
      int decided = deciding_[next++];
      if (writtenIn_[decided] != branch_)
        continue;
      for (int i : writers_[decided]) {
        if (followedIn_[i - first_] == branch_)
          continue;
        followedIn_[i - first_] = branch_;
        ops_[i].decidesLoop = true;
        for (int reg : usesOf(i).read)
          decide(reg);
      }
    }
  }

  std::shared_ptr<const SpinLoop> loopOf(int branch) {
    branch_ = branch;
    deciding_.clear();
    readLoop(ops_[branch].target);
    followWriters();
    std::sort(deciding_.begin(), deciding_.end());
    auto loop = std::make_shared<SpinLoop>();
    loop->length = branch - ops_[branch].target;
    for (int reg : deciding_) {
      if (writtenIn_[reg] != branch_)
        continue;
      if (Pred pred = decoder_.predOfRegister(reg); pred.isValid()) {
        loop->predicates.push_back(pred);
        continue;
      }
      ptx::Operand operand;
      operand.kind = ptx::Operand::Kind::reg;
      operand.reg = reg;
      loop->registers.push_back(decoder_.reg(operand));
    }
    return loop;
  }

  Decoder &decoder_;
  std::vector<Op> &ops_;
  int first_;
  std::vector<int> pollsBefore_; ///< by instruction, from first_ on
  std::vector<Uses> uses_;       ///< likewise; where somebody asked
  int branch_ = -1;              ///< of the loop at hand
  std::vector<int> deciding_;    ///< registers, as they are found
  /// By register, the instructions of the loop that write it; of which loop
  /// that is; and the last loop it decides about.
  std::vector<std::vector<int>> writers_;
  std::vector<int> writtenIn_, decidesIn_;
  std::vector<int> followedIn_; ///< by instruction, the last loop
};

} // namespace

void addSpinLoops(Decoder &decoder, std::vector<Op> &ops, int first) {
  SpinLoops(decoder, ops, first).add();
}

} // namespace kiln::sim
