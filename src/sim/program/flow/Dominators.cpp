// Dominators: Lengauer and Tarjan, "A fast algorithm for finding dominators in
// a flowgraph" (1979), the simple version, without recursion.
#include "sim/program/flow/Dominators.h"
#include "support/limits/Budget.h"

#include <algorithm>
#include <utility>

namespace kiln::sim {

namespace {

/// Nodes go by their number in a depth-first walk from the root.
class LengauerTarjan {
public:
  LengauerTarjan(const std::vector<std::vector<int>> &successors, int root)
      : successors_(successors), numberOf_(successors.size(), -1) {
    walk(root);
    findPredecessors();
    label_.resize(nodeOf_.size());
    for (std::size_t i = 0; i < label_.size(); ++i)
      label_[i] = static_cast<int>(i);
    semi_ = label_;
    ancestor_.assign(nodeOf_.size(), -1);
  }

  std::vector<int> solve() {
    int count = static_cast<int>(nodeOf_.size());
    std::vector<int> dominator(count, 0);
    std::vector<std::vector<int>> waiting(count); ///< for their semidominator
    for (int w = count - 1; w > 0; --w) {
      checkBudget();
      for (int v : predecessors_[w])
        semi_[w] = std::min(semi_[w], semi_[evaluate(v)]);
      waiting[semi_[w]].push_back(w);
      ancestor_[w] = parent_[w];
      for (int v : std::exchange(waiting[parent_[w]], {})) {
        int u = evaluate(v);
        dominator[v] = semi_[u] < semi_[v] ? u : parent_[w];
      }
    }
    std::vector<int> result(successors_.size(), -1);
    for (int w = 0; w < count; ++w) {
      if (dominator[w] != semi_[w])
        dominator[w] = dominator[dominator[w]];
      result[nodeOf_[w]] = nodeOf_[dominator[w]];
    }
    return result;
  }

private:
  void walk(int root) {
    std::vector<std::pair<int, std::size_t>> stack;
    auto enter = [&](int node, int parent) {
      numberOf_[node] = static_cast<int>(nodeOf_.size());
      nodeOf_.push_back(node);
      parent_.push_back(parent);
      stack.push_back({node, 0});
    };
    enter(root, 0);
    while (!stack.empty()) {
      auto &[node, child] = stack.back();
      if (child == successors_[node].size()) {
        stack.pop_back();
        continue;
      }
      int below = successors_[node][child++];
      if (numberOf_[below] < 0)
        enter(below, numberOf_[node]);
    }
  }

  void findPredecessors() {
    predecessors_.resize(nodeOf_.size());
    for (std::size_t i = 0; i < nodeOf_.size(); ++i)
      for (int successor : successors_[nodeOf_[i]])
        predecessors_[numberOf_[successor]].push_back(static_cast<int>(i));
  }

  /// The node of least semidominator on the way up to the linked root.
  int evaluate(int v) {
    if (ancestor_[v] < 0)
      return v;
    path_.clear();
    for (int u = v; ancestor_[ancestor_[u]] >= 0; u = ancestor_[u])
      path_.push_back(u);
    for (std::size_t i = path_.size(); i-- > 0;) {
      int u = path_[i], above = ancestor_[u];
      if (semi_[label_[above]] < semi_[label_[u]])
        label_[u] = label_[above];
      ancestor_[u] = ancestor_[above];
    }
    return label_[v];
  }

  const std::vector<std::vector<int>> &successors_;
  std::vector<int> numberOf_;
  std::vector<int> nodeOf_, parent_; ///< by number
  std::vector<std::vector<int>> predecessors_;
  std::vector<int> semi_, label_, ancestor_;
  std::vector<int> path_;
};

} // namespace

std::vector<int>
immediateDominators(const std::vector<std::vector<int>> &successors, int root) {
  return LengauerTarjan(successors, root).solve();
}

} // namespace kiln::sim
