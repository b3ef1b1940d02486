// Graph: nodes, edges, clones and their order.
#include "cudart/graph/Graph.h"
#include "cudart/CudaError.h"
#include "cudart/Handles.h"

#include <algorithm>
#include <atomic>
#include <map>

namespace kiln::cudart {

std::recursive_mutex &graphMutex() {
  static auto *mutex = new std::recursive_mutex; // NOLINT: never destroyed
  return *mutex;
}

static std::uint64_t nextId() {
  static std::atomic<std::uint64_t> count{0};
  return ++count;
}

GraphNode::GraphNode(Graph &owner, Work what)
    : graph(&owner), work(std::move(what)), id(nextId()), original(id) {
  Handles::get().add(this, Handles::Kind::node);
}

bool GraphNode::dependsOn(const GraphNode &other, const GraphEdge &edge) const {
  return std::any_of(dependencies.begin(), dependencies.end(),
                     [&](const GraphDependency &one) {
                       return one.node == &other && one.edge == edge;
                     });
}

Graph::Graph() : id(nextId()) {
  Handles::get().add(this, Handles::Kind::graph);
}

/// Children are their node's own.
static Work cloneWork(const Work &work) {
  Work copy = work;
  auto clone = [](std::shared_ptr<Graph> &graph) {
    graph = std::make_shared<Graph>(*graph);
    graph->isChild = true;
  };
  if (auto *child = std::get_if<ChildWork>(&copy))
    clone(child->graph);
  else if (auto *conditional = std::get_if<ConditionalWork>(&copy))
    for (std::shared_ptr<Graph> &body : conditional->bodies)
      clone(body);
  return copy;
}

Graph::Graph(const Graph &other)
    : id(nextId()), objects(other.objects), conditions(other.conditions) {
  Handles::get().add(this, Handles::Kind::graph);
  std::map<const GraphNode *, GraphNode *> clones;
  for (const auto &node : other.nodes_) {
    nodes_.push_back(
        std::make_unique<GraphNode>(*this, cloneWork(node->work)));
    nodes_.back()->original = node->id;
    nodes_.back()->isEnabled = node->isEnabled;
    clones[node.get()] = nodes_.back().get();
  }
  for (const auto &node : other.nodes_)
    for (const GraphDependency &dependency : node->dependencies)
      clones[node.get()]->dependencies.push_back(
          {clones[dependency.node], dependency.edge});
  for (auto &[object, count] : objects)
    object->references += count;
}

Graph::~Graph() {
  for (const auto &node : nodes_)
    Handles::get().remove(node.get(), Handles::Kind::node);
  Handles::get().remove(this, Handles::Kind::graph);
  for (auto &[object, count] : objects)
    release(object, count);
}

void Graph::check(const GraphNode &node) const {
  if (node.graph != this)
    throw CudaError(kInvalidValue,
                    "a node depends on a node of another graph");
}

GraphNode &Graph::add(Work work, std::vector<GraphDependency> dependencies) {
  for (std::size_t i = 0; i < dependencies.size(); ++i) {
    check(*dependencies[i].node);
    for (std::size_t j = 0; j < i; ++j)
      if (dependencies[i].node == dependencies[j].node)
        throw CudaError(kInvalidValue,
                        "a node depends on the same node twice");
  }
  nodes_.push_back(std::make_unique<GraphNode>(*this, std::move(work)));
  nodes_.back()->dependencies = std::move(dependencies);
  return *nodes_.back();
}

void Graph::remove(GraphNode &node) {
  for (const auto &other : nodes_)
    std::erase_if(other->dependencies, [&](const GraphDependency &one) {
      return one.node == &node;
    });
  Handles::get().remove(&node, Handles::Kind::node);
  std::erase_if(nodes_, [&](const auto &one) { return one.get() == &node; });
}

void Graph::addEdge(GraphNode &from, GraphNode &to, const GraphEdge &edge) {
  check(from);
  check(to);
  if (&from == &to || to.dependsOn(from, edge))
    throw CudaError(kInvalidValue, &from == &to
                                       ? "a node cannot depend on itself"
                                       : "the dependency is there already");
  bool isProgrammatic = edge.type == GraphEdge::dependentLaunch;
  if (edge.type > GraphEdge::dependentLaunch || edge.to_port != 0 ||
      edge.from_port > GraphEdge::atBegin ||
      (isProgrammatic && (edge.from_port == GraphEdge::atEnd ||
                          !std::holds_alternative<KernelWork>(from.work) ||
                          !std::holds_alternative<KernelWork>(to.work))))
    throw CudaError(kInvalidValue,
                    "a programmatic dependency is between two kernels, from "
                    "the port 1 or 2 of the first one");
  to.dependencies.push_back({&from, edge});
}

void Graph::removeEdge(GraphNode &from, GraphNode &to, const GraphEdge &edge) {
  check(from);
  check(to);
  if (!to.dependsOn(from, edge))
    throw CudaError(kInvalidValue, "there is no such dependency to remove");
  std::erase_if(to.dependencies, [&](const GraphDependency &one) {
    return one.node == &from && one.edge == edge;
  });
}

/// The graphs in a node.
static std::vector<std::shared_ptr<Graph>> graphsOf(const GraphNode &node) {
  if (const auto *child = std::get_if<ChildWork>(&node.work))
    return {child->graph};
  if (const auto *conditional = std::get_if<ConditionalWork>(&node.work))
    return conditional->bodies;
  return {};
}

GraphNode *Graph::cloneOf(const GraphNode &node) {
  for (const auto &one : nodes_) {
    if (one->original == node.id)
      return one.get();
    for (const std::shared_ptr<Graph> &graph : graphsOf(*one))
      if (GraphNode *found = graph->cloneOf(node))
        return found;
  }
  return nullptr;
}

std::vector<GraphNode *> Graph::inOrder() const {
  std::map<const GraphNode *, std::size_t> missing;
  std::map<const GraphNode *, std::vector<GraphNode *>> behind;
  std::vector<GraphNode *> order;
  for (const auto &node : nodes_) {
    missing[node.get()] = node->dependencies.size();
    for (const GraphDependency &dependency : node->dependencies)
      behind[dependency.node].push_back(node.get());
    if (node->dependencies.empty())
      order.push_back(node.get());
  }
  for (std::size_t i = 0; i < order.size(); ++i)
    for (GraphNode *next : behind[order[i]])
      if (--missing[next] == 0)
        order.push_back(next);
  return order.size() == nodes_.size() ? order : std::vector<GraphNode *>();
}

void release(UserObject *object, std::uint64_t count) {
  object->references -= std::min(count, object->references);
  if (object->references)
    return;
  Handles::get().remove(object, Handles::Kind::object);
  object->destroy(object->data);
  delete object;
}

} // namespace kiln::cudart
