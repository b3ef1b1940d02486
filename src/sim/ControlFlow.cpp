// ControlFlow: immediate post-dominators by the iterative algorithm of Cooper,
// Harvey and Kennedy on the reversed graph of basic blocks.
#include "sim/ControlFlow.h"

#include <algorithm>
#include <string_view>

namespace kiln::sim {

namespace {
struct Block {
  int first, last; ///< instructions
  std::vector<int> successors, predecessors;
};
} // namespace

static bool endsPath(const ptx::Instruction &instruction) {
  return instruction.predicate < 0 &&
         (instruction.opcode == "exit" || instruction.opcode == "ret" ||
          instruction.opcode == "trap");
}

/// Instructions an instruction may continue at.
static std::vector<int> next(const ptx::Function &function, int i) {
  const ptx::Instruction &instruction = function.body[i];
  std::vector<int> targets;
  int end = static_cast<int>(function.body.size());
  bool fallsThrough = !endsPath(instruction);
  if (instruction.opcode == "bra") {
    targets.push_back(instruction.operands.at(0).target);
    fallsThrough = instruction.predicate >= 0;
  } else if (instruction.opcode == "brx") {
    auto table = function.branchTargets.find(instruction.operands.at(1).name);
    if (table != function.branchTargets.end())
      targets = table->second;
    fallsThrough = instruction.predicate >= 0;
  }
  if (fallsThrough && i + 1 < end)
    targets.push_back(i + 1);
  return targets;
}

static std::vector<Block> blocksOf(const ptx::Function &function,
                                   std::vector<int> &blockOf) {
  int count = static_cast<int>(function.body.size());
  std::vector<bool> begins(count + 1, false);
  begins[0] = true;
  for (int i = 0; i < count; ++i) {
    const std::string &opcode = function.body[i].opcode;
    if (opcode != "bra" && opcode != "brx" && !endsPath(function.body[i]))
      continue;
    begins[i + 1] = true;
    for (int target : next(function, i))
      begins[target] = true;
  }
  std::vector<Block> blocks;
  blockOf.assign(count, 0);
  for (int i = 0; i < count; ++i) {
    if (begins[i])
      blocks.push_back({i, i, {}, {}});
    blocks.back().last = i;
    blockOf[i] = static_cast<int>(blocks.size()) - 1;
  }
  for (std::size_t b = 0; b < blocks.size(); ++b)
    for (int target : next(function, blocks[b].last)) {
      if (target >= count)
        continue;
      blocks[b].successors.push_back(blockOf[target]);
      blocks[blockOf[target]].predecessors.push_back(static_cast<int>(b));
    }
  return blocks;
}

std::vector<int> immediatePostDominators(const ptx::Function &function) {
  int count = static_cast<int>(function.body.size());
  std::vector<int> result(count, -1);
  if (count == 0)
    return result;
  std::vector<int> blockOf;
  std::vector<Block> blocks = blocksOf(function, blockOf);
  int exit = static_cast<int>(blocks.size()); // a virtual one behind all ends
  std::vector<std::vector<int>> backwards(exit + 1);
  for (int b = 0; b < exit; ++b) {
    for (int successor : blocks[b].successors)
      backwards[successor].push_back(b);
    if (blocks[b].successors.empty())
      backwards[exit].push_back(b);
  }
  // Post-order of the reversed graph, without recursion.
  std::vector<int> order, position(exit + 1, -1);
  std::vector<std::pair<int, std::size_t>> stack = {{exit, 0}};
  std::vector<bool> isSeen(exit + 1, false);
  isSeen[exit] = true;
  while (!stack.empty()) {
    auto &[node, child] = stack.back();
    if (child < backwards[node].size()) {
      int below = backwards[node][child++];
      if (!isSeen[below]) {
        isSeen[below] = true;
        stack.push_back({below, 0});
      }
      continue;
    }
    position[node] = static_cast<int>(order.size());
    order.push_back(node);
    stack.pop_back();
  }
  std::vector<int> dominator(exit + 1, -1);
  dominator[exit] = exit;
  auto meet = [&](int a, int b) {
    while (a != b) {
      while (position[a] < position[b])
        a = dominator[a];
      while (position[b] < position[a])
        b = dominator[b];
    }
    return a;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (auto node = order.rbegin(); node != order.rend(); ++node) {
      if (*node == exit)
        continue;
      int best = -1;
      const std::vector<int> &successors = blocks[*node].successors;
      if (successors.empty())
        best = exit;
      for (int successor : successors)
        if (dominator[successor] >= 0)
          best = best < 0 ? successor : meet(best, successor);
      if (best >= 0 && dominator[*node] != best) {
        dominator[*node] = best;
        changed = true;
      }
    }
  }
  for (int i = 0; i < count; ++i) {
    int target = dominator[blockOf[i]];
    if (target >= 0 && target != exit)
      result[i] = blocks[target].first;
  }
  return result;
}

} // namespace kiln::sim
