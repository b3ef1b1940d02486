// Graph: nodes of work and what each waits for, as programs build or capture it.
#pragma once

#include "cudart/graph/GraphEdge.h"
#include "cudart/graph/Work.h"

#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace kiln::cudart {

/// Held by everyone who looks at graphs or captures.
std::recursive_mutex &graphMutex();

class GraphNode {
public:
  GraphNode(Graph &owner, Work what);

  Graph *graph;
  Work work;
  std::uint64_t id;       ///< no two nodes have the same
  std::uint64_t original; ///< of the node that it is a clone of; else its own
  bool isEnabled = true;  ///< in a graph that was instantiated
  std::vector<GraphDependency> dependencies;

  bool dependsOn(const GraphNode &other, const GraphEdge &edge) const;
};

/// An object of the program that a graph keeps alive.
struct UserObject {
  void *data = nullptr;
  void (*destroy)(void *) = nullptr;
  std::uint64_t references = 0;
};

class Graph {
public:
  Graph();
  /// A clone, with its children's; the nodes know whose clones they are.
  Graph(const Graph &other);
  ~Graph();
  Graph &operator=(const Graph &) = delete;

  /// Throws CudaError where a dependency is none of this graph's nodes.
  GraphNode &add(Work work, std::vector<GraphDependency> dependencies);
  void remove(GraphNode &node);
  const std::vector<std::unique_ptr<GraphNode>> &nodes() const {
    return nodes_;
  }
  /// Throws CudaError where it is there, or is not.
  void addEdge(GraphNode &from, GraphNode &to, const GraphEdge &edge);
  void removeEdge(GraphNode &from, GraphNode &to, const GraphEdge &edge);
  /// The clone of a node, here or in a child; null: there is none.
  GraphNode *cloneOf(const GraphNode &node);
  /// Each behind those that it waits for; empty where they wait for each other.
  std::vector<GraphNode *> inOrder() const;
  /// In the language of Graphviz. `flags` as cudaGraphDebugDotPrint has them.
  std::string toDot(unsigned flags) const;

  std::uint64_t id;
  bool isChild = false; ///< a node owns it
  bool isCaptured = false; ///< a capture is adding to it
  std::vector<std::pair<UserObject *, std::uint64_t>> objects;
  /// Conditional handles with the values that a launch begins with.
  struct Condition {
    std::uint64_t handle;
    std::uint32_t value;
    bool isAssigned;
    Buffer memory;
  };
  std::vector<Condition> conditions;

private:
  void check(const GraphNode &node) const;

  std::vector<std::unique_ptr<GraphNode>> nodes_;
};

/// Take references away; the last one calls the function that destroys it.
void release(UserObject *object, std::uint64_t count);

} // namespace kiln::cudart
