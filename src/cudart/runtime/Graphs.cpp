// Graphs: made, looked at, instantiated, launched and updated.
#include "cudart/Handles.h"
#include "cudart/runtime/Call.h"
#include "cudart/runtime/GraphTypes.h"
#include "kiln/base/file.h"

#include <algorithm>

using namespace kiln::cudart;

/// What every call about graphs does: nobody else looks at them meanwhile.
template <typename Work>
static cudaError_t graphCall(const char *name, const Work &work) {
  return call(name, [&]() -> cudaError_t {
    std::lock_guard lock(graphMutex());
    return work();
  });
}

KILN_CUDA cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned flags) {
  return graphCall("cudaGraphCreate", [&]() -> cudaError_t {
    if (!graph || flags)
      return cudaErrorInvalidValue;
    *graph = new Graph;
    return cudaSuccess;
  });
}

KILN_CUDA cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return graphCall("cudaGraphDestroy", [&]() -> cudaError_t {
    if (checked(graph).isChild || graph->isCaptured)
      return cudaErrorInvalidValue;
    delete graph;
    return cudaSuccess;
  });
}

KILN_CUDA cudaError_t cudaGraphClone(cudaGraph_t *clone, cudaGraph_t graph) {
  return graphCall("cudaGraphClone", [&]() -> cudaError_t {
    if (!clone || !checked(graph).conditions.empty())
      return cudaErrorInvalidValue;
    *clone = new Graph(*graph);
    return cudaSuccess;
  });
}

KILN_CUDA cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t *found,
                                               cudaGraphNode_t node,
                                               cudaGraph_t clone) {
  return graphCall("cudaGraphNodeFindInClone", [&]() -> cudaError_t {
    if (!found)
      return cudaErrorInvalidValue;
    *found = checked(clone).cloneOf(checked(node));
    return *found ? cudaSuccess : cudaErrorInvalidValue;
  });
}

KILN_CUDA cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) {
  return graphCall("cudaGraphDestroyNode", [&] {
    checked(node).graph->remove(*node);
    return cudaSuccess;
  });
}

KILN_CUDA cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, int *type) {
  // In the order of Work.
  static constexpr int kTypes[] = {0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 13};
  return graphCall("cudaGraphNodeGetType", [&]() -> cudaError_t {
    if (!type)
      return cudaErrorInvalidValue;
    *type = kTypes[checked(node).work.index()];
    return cudaSuccess;
  });
}

KILN_CUDA cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph,
                                             const char *path, unsigned flags) {
  return graphCall("cudaGraphDebugDotPrint", [&]() -> cudaError_t {
    if (!path)
      return cudaErrorInvalidValue;
    std::string text = checked(graph).toDot(flags);
    try {
      kiln::write_file(path, {text});
    } catch (const kiln::RuntimeError &error) {
      throw CudaError(cudaErrorOperatingSystem, error.message());
    }
    return cudaSuccess;
  });
}

// Lists: the program gives room for so many, or asks how many there are.

/// Nodes into an array of the program's. Where it is larger the rest is null.
static cudaError_t give(const std::vector<GraphNode *> &all,
                        cudaGraphNode_t *nodes, std::size_t *count) {
  if (!count)
    return cudaErrorInvalidValue;
  std::size_t room = std::exchange(*count, all.size());
  if (!nodes)
    return cudaSuccess;
  for (std::size_t i = 0; i < room; ++i)
    nodes[i] = i < all.size() ? all[i] : nullptr;
  *count = std::min(room, all.size());
  return cudaSuccess;
}

/// Edges likewise. Those that are more than "behind the end of" are not to be
/// lost.
static cudaError_t give(const std::vector<std::pair<GraphNode *, GraphNode *>> &all,
                        const std::vector<GraphEdge> &data,
                        cudaGraphNode_t *from, cudaGraphNode_t *to,
                        cudaGraphEdgeData *edges, std::size_t *count) {
  if (!count)
    return cudaErrorInvalidValue;
  std::size_t room = std::exchange(*count, all.size());
  if (!from && !to)
    return cudaSuccess;
  if (!edges && std::any_of(data.begin(), data.end(), [](const GraphEdge &one) {
        return !(one == GraphEdge());
      }))
    return cudaErrorLossyQuery;
  for (std::size_t i = 0; i < room; ++i) {
    bool isThere = i < all.size();
    if (from)
      from[i] = isThere ? all[i].first : nullptr;
    if (to)
      to[i] = isThere ? all[i].second : nullptr;
    if (edges)
      edges[i] = isThere ? data[i] : GraphEdge();
  }
  *count = std::min(room, all.size());
  return cudaSuccess;
}

KILN_CUDA cudaError_t cudaGraphGetNodes(cudaGraph_t graph,
                                        cudaGraphNode_t *nodes,
                                        std::size_t *count) {
  return graphCall("cudaGraphGetNodes", [&] {
    std::vector<GraphNode *> all;
    for (const auto &node : checked(graph).nodes())
      all.push_back(node.get());
    return give(all, nodes, count);
  });
}

KILN_CUDA cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph,
                                            cudaGraphNode_t *nodes,
                                            std::size_t *count) {
  return graphCall("cudaGraphGetRootNodes", [&] {
    std::vector<GraphNode *> all;
    for (const auto &node : checked(graph).nodes())
      if (node->dependencies.empty())
        all.push_back(node.get());
    return give(all, nodes, count);
  });
}

KILN_CUDA cudaError_t KILN_WITH_EDGES(cudaGraphGetEdges)(
    cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to,
    cudaGraphEdgeData *edges, std::size_t *count) {
  return graphCall("cudaGraphGetEdges", [&] {
    std::vector<std::pair<GraphNode *, GraphNode *>> all;
    std::vector<GraphEdge> data;
    for (const auto &node : checked(graph).nodes())
      for (const GraphDependency &one : node->dependencies) {
        all.emplace_back(one.node, node.get());
        data.push_back(one.edge);
      }
    return give(all, data, from, to, edges, count);
  });
}
KILN_BEFORE_13(KILN_CUDA cudaError_t cudaGraphGetEdges(
    cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to,
    std::size_t *count) {
  return cudaGraphGetEdges_v2(graph, from, to, nullptr, count);
})

KILN_CUDA cudaError_t KILN_WITH_EDGES(cudaGraphNodeGetDependencies)(
    cudaGraphNode_t node, cudaGraphNode_t *nodes, cudaGraphEdgeData *edges,
    std::size_t *count) {
  return graphCall("cudaGraphNodeGetDependencies", [&] {
    std::vector<std::pair<GraphNode *, GraphNode *>> all;
    std::vector<GraphEdge> data;
    for (const GraphDependency &one : checked(node).dependencies) {
      all.emplace_back(one.node, node);
      data.push_back(one.edge);
    }
    return give(all, data, nodes, nullptr, edges, count);
  });
}
KILN_BEFORE_13(KILN_CUDA cudaError_t cudaGraphNodeGetDependencies(
    cudaGraphNode_t node, cudaGraphNode_t *nodes, std::size_t *count) {
  return cudaGraphNodeGetDependencies_v2(node, nodes, nullptr, count);
})

KILN_CUDA cudaError_t KILN_WITH_EDGES(cudaGraphNodeGetDependentNodes)(
    cudaGraphNode_t node, cudaGraphNode_t *nodes, cudaGraphEdgeData *edges,
    std::size_t *count) {
  return graphCall("cudaGraphNodeGetDependentNodes", [&] {
    std::vector<std::pair<GraphNode *, GraphNode *>> all;
    std::vector<GraphEdge> data;
    for (const auto &other : checked(node).graph->nodes())
      for (const GraphDependency &one : other->dependencies)
        if (one.node == node) {
          all.emplace_back(other.get(), node);
          data.push_back(one.edge);
        }
    return give(all, data, nodes, nullptr, edges, count);
  });
}
KILN_BEFORE_13(KILN_CUDA cudaError_t cudaGraphNodeGetDependentNodes(
    cudaGraphNode_t node, cudaGraphNode_t *nodes, std::size_t *count) {
  return cudaGraphNodeGetDependentNodes_v2(node, nodes, nullptr, count);
})

/// Add or remove dependencies, all of them or none.
template <typename Change>
static cudaError_t changeEdges(const char *name, cudaGraph_t graph,
                               const cudaGraphNode_t *from,
                               const cudaGraphNode_t *to,
                               const cudaGraphEdgeData *edges,
                               std::size_t count, const Change &change) {
  return graphCall(name, [&]() -> cudaError_t {
    checked(graph);
    if (count && (!from || !to))
      return cudaErrorInvalidValue;
    for (std::size_t i = 0; i < count; ++i) {
      checked(from[i]);
      checked(to[i]);
    }
    for (std::size_t i = 0; i < count; ++i)
      change(*from[i], *to[i], edges ? edges[i] : GraphEdge());
    return cudaSuccess;
  });
}

KILN_CUDA cudaError_t KILN_WITH_EDGES(cudaGraphAddDependencies)(
    cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
    const cudaGraphEdgeData *edges, std::size_t count) {
  return changeEdges("cudaGraphAddDependencies", graph, from, to, edges, count,
                     [&](GraphNode &one, GraphNode &other, GraphEdge edge) {
                       graph->addEdge(one, other, edge);
                     });
}
KILN_BEFORE_13(KILN_CUDA cudaError_t cudaGraphAddDependencies(
    cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
    std::size_t count) {
  return cudaGraphAddDependencies_v2(graph, from, to, nullptr, count);
})

KILN_CUDA cudaError_t KILN_WITH_EDGES(cudaGraphRemoveDependencies)(
    cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
    const cudaGraphEdgeData *edges, std::size_t count) {
  return changeEdges("cudaGraphRemoveDependencies", graph, from, to, edges,
                     count,
                     [&](GraphNode &one, GraphNode &other, GraphEdge edge) {
                       graph->removeEdge(one, other, edge);
                     });
}
KILN_BEFORE_13(KILN_CUDA cudaError_t cudaGraphRemoveDependencies(
    cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
    std::size_t count) {
  return cudaGraphRemoveDependencies_v2(graph, from, to, nullptr, count);
})

// Executable graphs.

KILN_CUDA cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec,
                                                    cudaGraph_t graph,
                                                    unsigned long long flags) {
  return graphCall("cudaGraphInstantiate", [&]() -> cudaError_t {
    if (!exec)
      return cudaErrorInvalidValue;
    *exec = nullptr;
    *exec = new GraphExec(checked(graph), flags);
    return cudaSuccess;
  });
}
KILN_CUDA_ALSO(cudaGraphInstantiate, WithFlags)

KILN_CUDA cudaError_t cudaGraphInstantiateWithParams(
    cudaGraphExec_t *exec, cudaGraph_t graph,
    cudaGraphInstantiateParams *parameters) {
  return graphCall("cudaGraphInstantiateWithParams", [&]() -> cudaError_t {
    constexpr unsigned long long kUpload = 2;
    if (!exec || !parameters)
      return cudaErrorInvalidValue;
    *exec = nullptr;
    GraphRefusal refusal = GraphExec::whyNot(checked(graph), parameters->flags);
    parameters->result_out = refusal.result;
    parameters->errNode_out = const_cast<GraphNode *>(refusal.node);
    if (refusal.code)
      return refusal.code;
    *exec = new GraphExec(*graph, parameters->flags & ~kUpload);
    return cudaSuccess;
  });
}
KILN_CUDA_PER_THREAD(cudaGraphInstantiateWithParams, _ptsz)

KILN_CUDA cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  return call("cudaGraphExecDestroy", [&] {
    checked(exec);
    delete exec; // waits for what is under way, without the graphs' mutex
    return cudaSuccess;
  });
}

KILN_CUDA cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t exec,
                                            unsigned long long *flags) {
  return graphCall("cudaGraphExecGetFlags", [&]() -> cudaError_t {
    if (!flags)
      return cudaErrorInvalidValue;
    *flags = checked(exec).flags();
    return cudaSuccess;
  });
}

KILN_CUDA cudaError_t cudaGraphUpload(cudaGraphExec_t exec,
                                      cudaStream_t stream) {
  return graphCall("cudaGraphUpload", [&] {
    checked(exec);
    streamHandleOf(stream);
    return cudaSuccess;
  });
}
KILN_CUDA_PER_THREAD(cudaGraphUpload, _ptsz)

KILN_CUDA cudaError_t cudaGraphLaunch(cudaGraphExec_t exec,
                                      cudaStream_t stream) {
  return call("cudaGraphLaunch", [&] {
    checked(exec);
    CudaStream *handle = streamHandleOf(stream);
    if (StreamCapture *capture = StreamCapture::of(handle))
      capture->add(handle, exec->asChild());
    else
      exec->launch(handle ? handle->stream : kiln::Stream());
    return cudaSuccess;
  });
}
KILN_CUDA_PER_THREAD(cudaGraphLaunch, _ptsz)

KILN_CUDA cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec,
                                          cudaGraph_t graph,
                                          cudaGraphExecUpdateResultInfo *result) {
  return graphCall("cudaGraphExecUpdate", [&]() -> cudaError_t {
    auto refusal = checked(exec).update(checked(graph));
    if (result)
      *result = {};
    if (!refusal)
      return cudaSuccess;
    if (result)
      *result = {refusal->result, const_cast<GraphNode *>(refusal->node),
                 const_cast<GraphNode *>(refusal->from)};
    return refusal->code;
  });
}

// Objects of the program that graphs keep.

/// One that the program has made and not given back.
static UserObject &checked(cudaUserObject_t object, unsigned count) {
  if (!object || !count ||
      !Handles::get().has(object, Handles::Kind::object))
    throw CudaError(kInvalidValue, "the user object is none, or no longer");
  return *object;
}

KILN_CUDA cudaError_t cudaUserObjectCreate(cudaUserObject_t *object, void *data,
                                           cudaHostFn_t destroy,
                                           unsigned references,
                                           unsigned flags) {
  return graphCall("cudaUserObjectCreate", [&]() -> cudaError_t {
    constexpr unsigned kNoDestructorSync = 1;
    if (!object || !destroy || !references || flags != kNoDestructorSync)
      return cudaErrorInvalidValue;
    *object = new UserObject{data, destroy, references};
    Handles::get().add(*object, Handles::Kind::object);
    return cudaSuccess;
  });
}

KILN_CUDA cudaError_t cudaUserObjectRetain(cudaUserObject_t object,
                                           unsigned count) {
  return graphCall("cudaUserObjectRetain", [&] {
    checked(object, count).references += count;
    return cudaSuccess;
  });
}

KILN_CUDA cudaError_t cudaUserObjectRelease(cudaUserObject_t object,
                                            unsigned count) {
  return graphCall("cudaUserObjectRelease", [&] {
    release(&checked(object, count), count);
    return cudaSuccess;
  });
}

KILN_CUDA cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph,
                                                cudaUserObject_t object,
                                                unsigned count,
                                                unsigned flags) {
  return graphCall("cudaGraphRetainUserObject", [&]() -> cudaError_t {
    constexpr unsigned kMove = 1;
    if (flags & ~kMove)
      return cudaErrorInvalidValue;
    checked(graph);
    if (UserObject &one = checked(object, count); !(flags & kMove))
      one.references += count;
    graph->objects.emplace_back(object, count);
    return cudaSuccess;
  });
}

KILN_CUDA cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph,
                                                 cudaUserObject_t object,
                                                 unsigned count) {
  return graphCall("cudaGraphReleaseUserObject", [&]() -> cudaError_t {
    checked(object, count);
    for (auto &[held, references] : checked(graph).objects)
      if (held == object && references >= count) {
        references -= count;
        std::erase_if(graph->objects,
                      [](const auto &one) { return !one.second; });
        release(object, count);
        return cudaSuccess;
      }
    return cudaErrorInvalidValue;
  });
}

KILN_CUDA cudaError_t cudaGraphConditionalHandleCreate(
    unsigned long long *handle, cudaGraph_t graph, unsigned value,
    unsigned flags) {
  return graphCall("cudaGraphConditionalHandleCreate", [&]() -> cudaError_t {
    constexpr unsigned kAssignDefault = 1;
    if (!handle || flags & ~kAssignDefault)
      return cudaErrorInvalidValue;
    kiln::Device &device = Session::get().device();
    kiln::Buffer memory = device.allocate(sizeof(unsigned));
    device.set_name(memory, "the value of a conditional node");
    *handle = memory.address();
    checked(graph).conditions.push_back(
        {memory.address(), value, flags == kAssignDefault, memory});
    return cudaSuccess;
  });
}
