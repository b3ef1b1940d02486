// GraphExec: the plan of a graph, and its launch.
#include "cudart/graph/GraphExec.h"
#include "cudart/CudaError.h"
#include "cudart/Handles.h"

#include <algorithm>
#include <map>

namespace kiln::cudart {

// Results of instantiation and of updates, as CUDA numbers them.
static constexpr int kInvalidStructure = 2, kNodeNotSupported = 3,
                     kTopologyChanged = 2, kTypeChanged = 3,
                     kParametersChanged = 5;

/// What is done in which stream, and who waits for whom.
class GraphExec::Plan {
public:
  explicit Plan(const Graph &graph);
  void run(const Stream &stream);

private:
  struct Step {
    GraphNode *node;
    std::size_t branch;
    bool isWaitedFor = false;         ///< by steps of other branches
    std::vector<std::size_t> waits{}; ///< steps of other branches
    bool isDependent = false;         ///< a dependent launch behind the last
    std::vector<std::unique_ptr<Plan>> inner{}; ///< of the graphs in it
    Event done{};
  };

  void plan(GraphNode &node);
  void perform(Step &step, const Stream &stream);
  void performConditional(Step &step, const ConditionalWork &work,
                          const Stream &stream);

  std::vector<Step> steps_;
  std::map<const GraphNode *, std::size_t> stepOf_;
  std::vector<std::size_t> lastOf_; ///< of each branch: its last step
  std::vector<Stream> streams_;     ///< of the branches behind the first
  Event begun_;
};

GraphExec::Plan::Plan(const Graph &graph) {
  for (GraphNode *node : graph.inOrder())
    plan(*node);
  Device &device = Session::get().device();
  for (Step &step : steps_)
    step.done = device.create_event();
  begun_ = device.create_event();
  for (std::size_t i = 1; i < lastOf_.size(); ++i)
    streams_.push_back(device.create_stream(false));
}

void GraphExec::Plan::plan(GraphNode &node) {
  Step step{&node, lastOf_.size()};
  // Behind the first one that nobody goes on from.
  for (const GraphDependency &dependency : node.dependencies) {
    std::size_t ahead = stepOf_.at(dependency.node);
    std::size_t branch = steps_[ahead].branch;
    if (step.branch == lastOf_.size() && lastOf_[branch] == ahead) {
      step.branch = branch;
      step.isDependent =
          node.dependencies.size() == 1 &&
          dependency.edge.type == GraphEdge::dependentLaunch;
    }
  }
  for (const GraphDependency &dependency : node.dependencies) {
    std::size_t ahead = stepOf_.at(dependency.node);
    if (steps_[ahead].branch == step.branch)
      continue;
    step.waits.push_back(ahead);
    steps_[ahead].isWaitedFor = true;
  }
  if (step.branch == lastOf_.size())
    lastOf_.push_back(0);
  if (auto *child = std::get_if<ChildWork>(&node.work))
    step.inner.push_back(std::make_unique<Plan>(*child->graph));
  else if (auto *conditional = std::get_if<ConditionalWork>(&node.work))
    for (const std::shared_ptr<Graph> &body : conditional->bodies)
      step.inner.push_back(std::make_unique<Plan>(*body));
  lastOf_[step.branch] = stepOf_[&node] = steps_.size();
  steps_.push_back(std::move(step));
}

void GraphExec::Plan::run(const Stream &stream) {
  Device &device = Session::get().device();
  std::vector<bool> hasBegun(lastOf_.size());
  auto streamOf = [&](std::size_t branch) -> const Stream & {
    return branch ? streams_[branch - 1] : stream;
  };
  if (lastOf_.size() > 1)
    device.record(begun_, stream);
  for (Step &step : steps_) {
    const Stream &own = streamOf(step.branch);
    if (step.branch && !hasBegun[step.branch])
      device.wait(begun_, own);
    hasBegun[step.branch] = true;
    for (std::size_t ahead : step.waits)
      device.wait(steps_[ahead].done, own);
    perform(step, own);
    bool isLast = &steps_[lastOf_[step.branch]] == &step;
    if (step.isWaitedFor || (step.branch && isLast))
      device.record(step.done, own);
  }
  for (std::size_t branch = 1; branch < lastOf_.size(); ++branch)
    device.wait(steps_[lastOf_[branch]].done, stream);
}

void GraphExec::Plan::perform(Step &step, const Stream &stream) {
  if (!step.node->isEnabled)
    return;
  if (std::holds_alternative<ChildWork>(step.node->work))
    return step.inner.front()->run(stream);
  if (const auto *work = std::get_if<ConditionalWork>(&step.node->work))
    return performConditional(step, *work, stream);
  if (auto *kernel = std::get_if<KernelWork>(&step.node->work))
    kernel->launch.isDependent = step.isDependent;
  cudart::perform(step.node->work, stream);
}

void GraphExec::Plan::performConditional(Step &step,
                                         const ConditionalWork &work,
                                         const Stream &stream) {
  // The value is known when what is ahead has been done: the plan waits for it
  // here, where a GPU would decide by itself.
  Device &device = Session::get().device();
  auto read = [&] {
    device.synchronize(stream);
    std::uint32_t value = 0;
    device.enqueue_copy(reinterpret_cast<std::uint64_t>(&value), work.handle,
                        sizeof(value), stream);
    device.synchronize(stream);
    return Session::get().findings().broken() ? 0 : value;
  };
  std::uint32_t value = read();
  if (work.kind == ConditionalWork::choice) {
    if (value < step.inner.size())
      step.inner[value]->run(stream);
    return;
  }
  if (work.kind == ConditionalWork::once) {
    if (value)
      step.inner.front()->run(stream);
    else if (step.inner.size() > 1)
      step.inner[1]->run(stream);
    return;
  }
  for (; value; value = read())
    step.inner.front()->run(stream);
}

/// Every node of a graph and of those in it.
template <typename Body> static void forEach(const Graph &graph, Body body) {
  for (const auto &node : graph.nodes()) {
    body(*node);
    if (auto *child = std::get_if<ChildWork>(&node->work))
      forEach(*child->graph, body);
    else if (auto *conditional = std::get_if<ConditionalWork>(&node->work))
      for (const std::shared_ptr<Graph> &inner : conditional->bodies)
        forEach(*inner, body);
  }
}

GraphRefusal GraphExec::whyNot(const Graph &graph, unsigned long long flags) {
  constexpr unsigned long long kDeviceLaunch = 4, kKnown = 15;
  if (flags & ~kKnown)
    return {1, nullptr, nullptr, kInvalidValue};
  if (flags & kDeviceLaunch)
    return {kNodeNotSupported, nullptr, nullptr, kNotSupported};
  GraphRefusal refusal;
  std::vector<const Graph *> graphs = {&graph};
  forEach(graph, [&](const GraphNode &node) {
    if (auto *child = std::get_if<ChildWork>(&node.work))
      graphs.push_back(child->graph.get());
    else if (auto *conditional = std::get_if<ConditionalWork>(&node.work))
      for (const std::shared_ptr<Graph> &inner : conditional->bodies)
        graphs.push_back(inner.get());
  });
  for (const Graph *one : graphs)
    if (!one->nodes().empty() && one->inOrder().empty())
      return {kInvalidStructure, nullptr, nullptr, kInvalidValue};
  return refusal;
}

GraphExec::GraphExec(const Graph &graph, unsigned long long flags)
    : graph_(graph), flags_(flags) {
  if (GraphRefusal refusal = whyNot(graph, flags); refusal.code)
    throw CudaError(refusal.code,
                    refusal.result == kInvalidStructure
                        ? "the nodes of the graph wait for each other in a ring"
                        : "the graph cannot be instantiated with these flags");
  plan_ = std::make_unique<Plan>(graph_);
  Handles::get().add(this, Handles::Kind::exec);
}

GraphExec::~GraphExec() { Handles::get().remove(this, Handles::Kind::exec); }

GraphNode &GraphExec::own(const GraphNode &node) {
  GraphNode *found = graph_.cloneOf(node);
  if (!found)
    throw CudaError(kInvalidValue,
                    "the node is none of the graph that was instantiated");
  return *found;
}

void GraphExec::launch(const Stream &stream) {
  Session &session = Session::get();
  // Memory of the last launch that nobody has freed.
  forEach(graph_, [&](const GraphNode &node) {
    const auto *work = std::get_if<AllocWork>(&node.work);
    if (!work || !session.isAllocated(work->address))
      return;
    if (!(flags_ & freesOnLaunch))
      throw CudaError(kInvalidValue,
                      "the graph allocates memory that its last launch has "
                      "allocated and nobody has freed; free it, or instantiate "
                      "with cudaGraphInstantiateFlagAutoFreeOnLaunch");
    session.freeAsync(work->address, stream);
  });
  for (const Graph::Condition &condition : graph_.conditions)
    if (condition.isAssigned)
      session.device().enqueue_fill(condition.handle, condition.value, 4, 1,
                                    stream);
  plan_->run(stream);
}

/// What may not change between two works of a kind; null: nothing has.
static bool isSameKind(const Work &mine, const Work &other) {
  if (const auto *alloc = std::get_if<AllocWork>(&mine))
    return alloc->bytes == std::get<AllocWork>(other).bytes;
  return true;
}

/// Nodes in the order they were added, pair by pair.
static std::optional<GraphRefusal> compare(const Graph &mine,
                                           const Graph &other) {
  if (mine.nodes().size() != other.nodes().size())
    return GraphRefusal{kTopologyChanged};
  std::map<const GraphNode *, const GraphNode *> pairs;
  for (std::size_t i = 0; i < mine.nodes().size(); ++i)
    pairs[mine.nodes()[i].get()] = other.nodes()[i].get();
  for (const auto &node : mine.nodes()) {
    const GraphNode &twin = *pairs[node.get()];
    if (node->work.index() != twin.work.index())
      return GraphRefusal{kTypeChanged, &twin};
    if (node->dependencies.size() != twin.dependencies.size())
      return GraphRefusal{kTopologyChanged, &twin};
    for (const GraphDependency &dependency : node->dependencies)
      if (!twin.dependsOn(*pairs[dependency.node], dependency.edge))
        return GraphRefusal{kTopologyChanged, &twin};
    if (!isSameKind(node->work, twin.work))
      return GraphRefusal{kParametersChanged, &twin};
    const auto *child = std::get_if<ChildWork>(&node->work);
    if (!child)
      continue;
    auto inner = compare(*child->graph, *std::get<ChildWork>(twin.work).graph);
    if (inner)
      return inner;
  }
  return std::nullopt;
}

/// The nodes of two graphs of one form.
static void takeOver(Graph &mine, const Graph &other) {
  for (std::size_t i = 0; i < mine.nodes().size(); ++i) {
    GraphNode &node = *mine.nodes()[i];
    const GraphNode &twin = *other.nodes()[i];
    if (auto *child = std::get_if<ChildWork>(&node.work))
      takeOver(*child->graph, *std::get<ChildWork>(twin.work).graph);
    else if (!std::holds_alternative<ConditionalWork>(node.work))
      node.work = twin.work;
  }
}

std::optional<GraphRefusal> GraphExec::update(const Graph &graph) {
  if (auto refusal = compare(graph_, graph)) {
    refusal->code = 910; // cudaErrorGraphExecUpdateFailure
    return refusal;
  }
  takeOver(graph_, graph);
  return std::nullopt;
}

void GraphExec::updateChild(const GraphNode &node, const Graph &child) {
  auto *mine = std::get_if<ChildWork>(&own(node).work);
  if (!mine || compare(*mine->graph, child))
    throw CudaError(kInvalidValue, "the graph has another form than the one "
                                   "that the node was made of");
  takeOver(*mine->graph, child);
}

Work GraphExec::asChild() const {
  auto clone = std::make_shared<Graph>(graph_);
  clone->isChild = true;
  return ChildWork{std::move(clone)};
}

} // namespace kiln::cudart
