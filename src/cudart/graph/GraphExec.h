// GraphExec: a graph that was instantiated: its nodes in order, each in a stream
// of the device.
//
// Nodes that follow one another share a stream, the first of them the one that
// the graph is launched into; what can run side by side has streams of its own,
// so that kernels which wait for each other do so as on a GPU.
#pragma once

#include "cudart/graph/Graph.h"

#include <optional>

namespace kiln::cudart {

/// Why a graph cannot be instantiated, or an instance not be updated; the
/// numbers are those of CUDA.
struct GraphRefusal {
  int result = 0;
  const GraphNode *node = nullptr; ///< of the graph that was given
  const GraphNode *from = nullptr; ///< likewise, of the edge to that node
  int code = 0;
};

class GraphExec {
public:
  /// Those that change what it does (cudaGraphInstantiateFlags).
  enum Flag : std::uint8_t { freesOnLaunch = 1, usesNodePriority = 8 };

  /// Throws CudaError where the graph cannot be launched.
  GraphExec(const Graph &graph, unsigned long long flags);
  ~GraphExec();
  GraphExec(const GraphExec &) = delete;
  GraphExec &operator=(const GraphExec &) = delete;

  static GraphRefusal whyNot(const Graph &graph, unsigned long long flags);

  void launch(const Stream &stream);
  /// Take over what the nodes of a graph of the same form do; nothing where it
  /// has been done.
  std::optional<GraphRefusal> update(const Graph &graph);
  /// The same for the graph in one of its nodes. Throws CudaError.
  void updateChild(const GraphNode &node, const Graph &child);
  /// As a node of another graph.
  Work asChild() const;
  /// Its own node for one of the graph that it was made of. Throws CudaError.
  GraphNode &own(const GraphNode &node);
  unsigned long long flags() const { return flags_; }

private:
  class Plan;

  Graph graph_;
  unsigned long long flags_;
  std::unique_ptr<Plan> plan_;
};

} // namespace kiln::cudart
