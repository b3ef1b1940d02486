// ControlFlow: immediate post-dominators are the dominators of the reversed
// graph of basic blocks, from a node behind all ends.
//
// A table of branch targets is a node of its own: a thousand brx may share one
// of a thousand labels.
#include "sim/program/flow/ControlFlow.h"
#include "sim/program/flow/Dominators.h"

#include <map>
#include <string_view>

namespace kiln::sim {

namespace {

/// The graph from block to block, and on to the tables and the end.
class BlockGraph {
public:
  BlockGraph(const ptx::Function &function,
             const std::vector<const Instruction *> &rows)
      : function_(function), rows_(rows) {
    findBlocks();
    for (const auto &[name, targets] : function.branchTargets)
      tableNode_.emplace(name, nodeOfTable(targets));
    for (int block = 0; block < blockCount_; ++block)
      addEdges(block);
    exit_ = static_cast<int>(successors_.size());
  }

  /// By instruction, the first one of the block where all its paths meet.
  std::vector<int> reconvergencePoints() const {
    std::vector<int> dominator = immediateDominators(reversed(), exit_);
    std::vector<int> result(function_.body.size(), -1);
    for (std::size_t i = 0; i < result.size(); ++i) {
      int node = dominator[blockOf_[i]];
      while (node >= blockCount_ && node != exit_)
        node = dominator[node]; // a table is no place to meet
      if (node >= 0 && node != exit_)
        result[i] = first_[node];
    }
    return result;
  }

private:
  Flow flowOf(std::size_t i) const { return rows_[i]->traits.flow; }
  bool isBranch(std::size_t i) const {
    return flowOf(i) == Flow::branch || flowOf(i) == Flow::branchTable;
  }
  bool endsPath(std::size_t i) const {
    return function_.body[i].predicate < 0 && flowOf(i) == Flow::leave;
  }

  /// Labels may stand behind the last instruction; those lead to no block.
  bool isInside(int target) const {
    return target >= 0 && target < static_cast<int>(function_.body.size());
  }

  void findBlocks() {
    std::size_t count = function_.body.size();
    std::vector<bool> begins(count + 1, false);
    begins[0] = true;
    auto begin = [&](int target) {
      if (isInside(target))
        begins[target] = true;
    };
    for (std::size_t i = 0; i < count; ++i) {
      const ptx::Instruction &instruction = function_.body[i];
      if (isBranch(i) || endsPath(i))
        begins[i + 1] = true;
      if (flowOf(i) == Flow::branch)
        begin(instruction.operands[0].target);
    }
    for (const auto &[name, targets] : function_.branchTargets)
      for (int target : targets)
        begin(target);
    for (std::size_t i = 0; i < count; ++i) {
      if (begins[i])
        first_.push_back(static_cast<int>(i));
      blockOf_.push_back(static_cast<int>(first_.size()) - 1);
    }
    blockCount_ = static_cast<int>(first_.size());
    successors_.resize(first_.size());
  }

  void addEdge(int from, int target) {
    if (isInside(target))
      successors_[from].push_back(blockOf_[target]);
  }

  int nodeOfTable(const std::vector<int> &targets) {
    successors_.emplace_back();
    int node = static_cast<int>(successors_.size()) - 1;
    for (int target : targets)
      addEdge(node, target);
    return node;
  }

  void addEdges(int block) {
    int last = block + 1 < blockCount_
                   ? first_[block + 1] - 1
                   : static_cast<int>(function_.body.size()) - 1;
    const ptx::Instruction &instruction = function_.body[last];
    if (flowOf(last) == Flow::branch)
      addEdge(block, instruction.operands[0].target);
    if (flowOf(last) == Flow::branchTable) {
      auto table = tableNode_.find(instruction.operands[1].name);
      if (table != tableNode_.end())
        successors_[block].push_back(table->second);
    }
    bool fallsThrough =
        isBranch(last) ? instruction.predicate >= 0 : !endsPath(last);
    if (fallsThrough)
      addEdge(block, last + 1);
  }

  std::vector<std::vector<int>> reversed() const {
    std::vector<std::vector<int>> backwards(successors_.size() + 1);
    for (int node = 0; node < exit_; ++node) {
      for (int successor : successors_[node])
        backwards[successor].push_back(node);
      if (successors_[node].empty())
        backwards[exit_].push_back(node);
    }
    return backwards;
  }

  const ptx::Function &function_;
  const std::vector<const Instruction *> &rows_;
  std::vector<int> first_;   ///< instruction, by block
  std::vector<int> blockOf_; ///< by instruction
  int blockCount_ = 0;
  std::map<std::string_view, int> tableNode_;
  std::vector<std::vector<int>> successors_; ///< blocks, then tables
  int exit_ = 0;                             ///< behind all of them
};

} // namespace

std::vector<int>
immediatePostDominators(const ptx::Function &function,
                        const std::vector<const Instruction *> &rows) {
  if (function.body.empty())
    return {};
  return BlockGraph(function, rows).reconvergencePoints();
}

} // namespace kiln::sim
