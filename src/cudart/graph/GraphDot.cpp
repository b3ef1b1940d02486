// GraphDot: a graph in the language of Graphviz, for cudaGraphDebugDotPrint.
#include "cudart/graph/Graph.h"
#include "support/LaunchShape.h"
#include "support/text/Demangle.h"

#include <fmt/format.h>

namespace kiln::cudart {

/// What a label may hold between quotes.
static std::string quote(const std::string &text) {
  std::string quoted;
  for (char c : text) {
    if (c == '\n') {
      quoted += "\\n";
      continue;
    }
    if (std::string_view("\"\\{}<>|").find(c) != std::string_view::npos)
      quoted += '\\';
    quoted += c;
  }
  return quoted;
}

namespace {
/// The lines of a label: the kind first, and what it works on where that is
/// asked for.
class Label {
public:
  explicit Label(bool isVerbose) : isVerbose_(isVerbose) {}

  std::string operator()(const KernelWork &work) const {
    std::string text = demangle(work.launch.function->name);
    if (isVerbose_)
      text += fmt::format("\ngrid {}, block {}, {} bytes of dynamic shared "
                          "memory",
                          formatShape(work.launch.grid),
                          formatShape(work.launch.block),
                          work.launch.dynamicSmemBytes);
    return text;
  }
  std::string operator()(const CopyWork &work) const {
    return "MEMCPY" + (isVerbose_ ? fmt::format("\n{:#x} to {:#x}, {}x{}x{}",
                                                work.from, work.to, work.width,
                                                work.height, work.depth)
                                  : "");
  }
  std::string operator()(const FillWork &work) const {
    return "MEMSET" +
           (isVerbose_ ? fmt::format("\n{:#x}, {}x{} elements of {} bytes, {}",
                                     work.to, work.width, work.height,
                                     work.elementBytes, work.value)
                       : "");
  }
  std::string operator()(const HostWork &) const { return "HOST"; }
  std::string operator()(const ChildWork &) const { return "GRAPH"; }
  std::string operator()(const EmptyWork &) const { return "EMPTY"; }
  std::string operator()(const EventWaitWork &) const { return "EVENT_WAIT"; }
  std::string operator()(const EventRecordWork &) const {
    return "EVENT_RECORD";
  }
  std::string operator()(const AllocWork &work) const {
    return "MEM_ALLOC" +
           (isVerbose_ ? fmt::format("\n{} bytes at {:#x}", work.bytes,
                                     work.address)
                       : "");
  }
  std::string operator()(const FreeWork &work) const {
    return "MEM_FREE" +
           (isVerbose_ ? fmt::format("\n{:#x}", work.address) : "");
  }
  std::string operator()(const ConditionalWork &work) const {
    static constexpr const char *kNames[] = {"IF", "WHILE", "SWITCH"};
    return fmt::format("CONDITIONAL {}", kNames[work.kind]);
  }

private:
  bool isVerbose_;
};
} // namespace

static std::string nameOf(const GraphNode &node) {
  return fmt::format("graph_{}_node_{}", node.graph->id, node.id);
}

/// A graph and, behind it, those in it.
static void write(const Graph &graph, bool isVerbose, std::string &text) {
  text += fmt::format("subgraph cluster_{0} {{\nlabel=\"graph_{0}\" "
                      "graph[style=\"dashed\"]\n",
                      graph.id);
  for (const auto &node : graph.nodes())
    text += fmt::format("\"{}\"[style=\"bold\" shape=\"{}\" label=\"{}\"]\n",
                        nameOf(*node),
                        std::holds_alternative<KernelWork>(node->work)
                            ? "octagon"
                            : "rectangle",
                        quote(std::visit(Label(isVerbose), node->work)));
  for (const auto &node : graph.nodes())
    for (const GraphDependency &one : node->dependencies)
      text += fmt::format("\"{}\" -> \"{}\"{}\n", nameOf(*one.node),
                          nameOf(*node),
                          one.edge.type == GraphEdge::dependentLaunch
                              ? " [style=\"dashed\" label=\"programmatic\"]"
                              : "");
  text += "}\n";
  for (const auto &node : graph.nodes()) {
    if (const auto *child = std::get_if<ChildWork>(&node->work))
      write(*child->graph, isVerbose, text);
    else if (const auto *one = std::get_if<ConditionalWork>(&node->work))
      for (const std::shared_ptr<Graph> &body : one->bodies)
        write(*body, isVerbose, text);
  }
}

std::string Graph::toDot(unsigned flags) const {
  std::string text = "digraph dot {\n";
  write(*this, flags != 0, text);
  return text + "}\n";
}

} // namespace kiln::cudart
