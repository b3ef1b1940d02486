// Dominators: which node of a graph every path to another goes through last.
//
// By Lengauer and Tarjan with path compression, in O(m log n): the graph is
// that of somebody else's kernel, and simpler ways take quadratic time where it
// nests deeply.
#pragma once

#include <vector>

namespace kiln::sim {

/// By node, the immediate dominator: the last other node on every path from the
/// root. -1 for nodes the root does not reach; the root's is itself.
std::vector<int>
immediateDominators(const std::vector<std::vector<int>> &successors, int root);

} // namespace kiln::sim
