// Dominators: against the definition, on random graphs.
#include "sim/program/flow/Dominators.h"

#include <gtest/gtest.h>
#include <random>

using namespace kiln::sim;
using Graph = std::vector<std::vector<int>>;

/// The nodes that `root` reaches without `removed`.
static std::vector<bool> reached(const Graph &graph, int root, int removed) {
  std::vector<bool> isSeen(graph.size(), false);
  std::vector<int> open;
  auto enter = [&](int node) {
    if (node == removed || isSeen[node])
      return;
    isSeen[node] = true;
    open.push_back(node);
  };
  enter(root);
  while (!open.empty()) {
    int node = open.back();
    open.pop_back();
    for (int next : graph[node])
      enter(next);
  }
  return isSeen;
}

/// A dominates B: without A, the root does not reach B. The immediate one is
/// the one that all the others dominate.
static std::vector<int> byDefinition(const Graph &graph, int root) {
  int count = static_cast<int>(graph.size());
  std::vector<bool> isThere = reached(graph, root, -1);
  std::vector<std::vector<bool>> without;
  for (int a = 0; a < count; ++a)
    without.push_back(reached(graph, root, a));
  auto dominates = [&](int a, int b) { return a == b || !without[a][b]; };
  std::vector<int> result(count, -1);
  for (int b = 0; b < count; ++b) {
    if (b == root)
      result[b] = root;
    for (int a = 0; a < count && b != root; ++a) {
      if (!isThere[a] || !isThere[b] || a == b || !dominates(a, b))
        continue;
      if (result[b] < 0 || dominates(result[b], a))
        result[b] = a;
    }
  }
  return result;
}

TEST(Dominators, OfRandomGraphs) {
  std::mt19937 random(1);
  for (int round = 0; round < 400; ++round) {
    int count = 1 + static_cast<int>(random() % 12);
    Graph graph(count);
    for (unsigned edge = random() % (3 * count); edge > 0; --edge)
      graph[random() % count].push_back(static_cast<int>(random() % count));
    EXPECT_EQ(immediateDominators(graph, 0), byDefinition(graph, 0))
        << "round " << round;
  }
}
