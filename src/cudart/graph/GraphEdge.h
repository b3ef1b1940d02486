// GraphEdge: what a node waits for.
#pragma once

#include <cstdint>

namespace kiln::cudart {

class GraphNode;

/// Laid out as cudaGraphEdgeData.
struct GraphEdge {
  /// When the node ahead lets the one behind begin: at its end, when all of its
  /// CTAs have said so (griddepcontrol.launch_dependents), or when they have
  /// begun.
  enum Port : std::uint8_t { atEnd, programmatic, atBegin };
  enum Type : std::uint8_t { plain, dependentLaunch };

  std::uint8_t from_port = atEnd, to_port = 0, type = plain;
  std::uint8_t reserved[5] = {};

  bool operator==(const GraphEdge &) const = default;
};

struct GraphDependency {
  GraphNode *node = nullptr;
  GraphEdge edge = {};
};

} // namespace kiln::cudart
