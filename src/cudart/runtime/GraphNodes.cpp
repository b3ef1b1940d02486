// GraphNodes: nodes added to graphs, asked for and changed, in graphs and in
// executable ones.
#include "cudart/Handles.h"
#include "cudart/runtime/Call.h"
#include "cudart/runtime/GraphTypes.h"

#include <cstring>

using namespace kiln::cudart;

/// Add what `make` gives to a graph.
template <typename Make>
static cudaError_t addNode(const char *name, cudaGraphNode_t *node,
                           cudaGraph_t graph, const cudaGraphNode_t *nodes,
                           const cudaGraphEdgeData *edges, std::size_t count,
                           const Make &make) {
  return call(name, [&]() -> cudaError_t {
    std::lock_guard lock(graphMutex());
    if (!node)
      return cudaErrorInvalidValue;
    checked(graph);
    auto dependencies = dependenciesOf(nodes, edges, count);
    *node = &graph->add(make(), std::move(dependencies));
    return cudaSuccess;
  });
}

/// Look at a node, or change it.
template <typename Work>
static cudaError_t withNode(const char *name, cudaGraphNode_t node,
                            const void *parameters, const Work &work) {
  return call(name, [&]() -> cudaError_t {
    std::lock_guard lock(graphMutex());
    checked(node);
    if (!parameters)
      return cudaErrorInvalidValue;
    work();
    return cudaSuccess;
  });
}

/// Change the node of an executable graph that stands for `node`.
template <typename Make>
static cudaError_t setInExec(const char *name, cudaGraphExec_t exec,
                             cudaGraphNode_t node, const void *parameters,
                             const Make &make) {
  return withNode(name, node, parameters, [&] {
    replaceWork(checked(exec).own(*node), make());
  });
}

// Kernels.

KILN_CUDA cudaError_t cudaGraphAddKernelNode(
    cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *nodes,
    std::size_t count, const cudaKernelNodeParams *parameters) {
  if (!parameters)
    return noteError(cudaErrorInvalidValue);
  return addNode("cudaGraphAddKernelNode", node, graph, nodes, nullptr, count,
                 [&] { return workOf(*parameters); });
}
KILN_CUDA cudaError_t cudaGraphKernelNodeGetParams(
    cudaGraphNode_t node, cudaKernelNodeParams *parameters) {
  return withNode("cudaGraphKernelNodeGetParams", node, parameters, [&] {
    workOf<KernelWork>(node);
    *parameters = kernelParametersOf(node->work);
  });
}
KILN_CUDA cudaError_t cudaGraphKernelNodeSetParams(
    cudaGraphNode_t node, const cudaKernelNodeParams *parameters) {
  return withNode("cudaGraphKernelNodeSetParams", node, parameters,
                  [&] { replaceWork(*node, workOf(*parameters)); });
}
KILN_CUDA cudaError_t cudaGraphExecKernelNodeSetParams(
    cudaGraphExec_t exec, cudaGraphNode_t node,
    const cudaKernelNodeParams *parameters) {
  return setInExec("cudaGraphExecKernelNodeSetParams", exec, node, parameters,
                   [&] { return workOf(*parameters); });
}

using AttributeValue = decltype(cudaLaunchAttribute::value);

KILN_CUDA cudaError_t cudaGraphKernelNodeSetAttribute(
    cudaGraphNode_t node, int id, const AttributeValue *value) {
  return withNode("cudaGraphKernelNodeSetAttribute", node, value, [&] {
    if (id <= 0 || id > cudaLaunchAttributeLast ||
        id == cudaLaunchAttributeDeviceUpdatableKernelNode)
      throw CudaError(kInvalidValue, "kernel nodes have no such attribute");
    setAttribute(workOf<KernelWork>(node), id, *value);
  });
}
KILN_CUDA cudaError_t cudaGraphKernelNodeGetAttribute(cudaGraphNode_t node,
                                                      int id,
                                                      AttributeValue *value) {
  return withNode("cudaGraphKernelNodeGetAttribute", node, value, [&] {
    auto &attributes = workOf<KernelWork>(node).attributes;
    if (id <= 0 || id > cudaLaunchAttributeLast)
      throw CudaError(kInvalidValue, "kernel nodes have no such attribute");
    std::memset(value, 0, sizeof(*value));
    if (auto found = attributes.find(id); found != attributes.end())
      std::memcpy(value, found->second.data(), sizeof(*value));
  });
}
KILN_CUDA cudaError_t cudaGraphKernelNodeCopyAttributes(cudaGraphNode_t to,
                                                        cudaGraphNode_t from) {
  return withNode("cudaGraphKernelNodeCopyAttributes", to, from, [&] {
    auto &target = workOf<KernelWork>(to);
    for (const auto &[id, bytes] : workOf<KernelWork>(from).attributes) {
      AttributeValue value;
      std::memcpy(&value, bytes.data(), sizeof(value));
      setAttribute(target, id, value);
    }
  });
}

// Copies.

KILN_CUDA cudaError_t cudaGraphAddMemcpyNode(
    cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *nodes,
    std::size_t count, const cudaMemcpy3DParms *parameters) {
  if (!parameters)
    return noteError(cudaErrorInvalidValue);
  return addNode("cudaGraphAddMemcpyNode", node, graph, nodes, nullptr, count,
                 [&] { return copyOf(*parameters); });
}
KILN_CUDA cudaError_t cudaGraphMemcpyNodeGetParams(
    cudaGraphNode_t node, cudaMemcpy3DParms *parameters) {
  return withNode("cudaGraphMemcpyNodeGetParams", node, parameters, [&] {
    workOf<CopyWork>(node);
    *parameters = copyParametersOf(node->work);
  });
}
KILN_CUDA cudaError_t cudaGraphMemcpyNodeSetParams(
    cudaGraphNode_t node, const cudaMemcpy3DParms *parameters) {
  return withNode("cudaGraphMemcpyNodeSetParams", node, parameters,
                  [&] { replaceWork(*node, copyOf(*parameters)); });
}
KILN_CUDA cudaError_t cudaGraphExecMemcpyNodeSetParams(
    cudaGraphExec_t exec, cudaGraphNode_t node,
    const cudaMemcpy3DParms *parameters) {
  return setInExec("cudaGraphExecMemcpyNodeSetParams", exec, node, parameters,
                   [&] { return copyOf(*parameters); });
}

/// In one dimension.
static CopyWork plainCopy(std::uint64_t to, std::uint64_t from,
                          std::size_t bytes) {
  return {.to = to,
          .from = from,
          .toPitch = bytes,
          .fromPitch = bytes,
          .width = bytes};
}

/// Where a part of a variable lies.
static std::uint64_t symbolAt(const void *symbol, std::size_t offset,
                              std::size_t bytes) {
  std::size_t size = 0;
  const void *address = findSymbol(symbol, &size);
  if (!address)
    throw CudaError(cudaErrorInvalidSymbol, "there is no such variable");
  if (offset > size || bytes > size - offset)
    throw CudaError(kInvalidValue, "the copy leaves the variable");
  return addressOf(address) + offset;
}

KILN_CUDA cudaError_t cudaGraphAddMemcpyNode1D(
    cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *nodes,
    std::size_t count, void *to, const void *from, std::size_t bytes, int) {
  return addNode("cudaGraphAddMemcpyNode1D", node, graph, nodes, nullptr, count,
                 [&] {
                   return plainCopy(addressOf(to), addressOf(from), bytes);
                 });
}
KILN_CUDA cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node,
                                                     void *to, const void *from,
                                                     std::size_t bytes, int) {
  return withNode("cudaGraphMemcpyNodeSetParams1D", node, to, [&] {
    replaceWork(*node, plainCopy(addressOf(to), addressOf(from), bytes));
  });
}
KILN_CUDA cudaError_t cudaGraphExecMemcpyNodeSetParams1D(
    cudaGraphExec_t exec, cudaGraphNode_t node, void *to, const void *from,
    std::size_t bytes, int) {
  return setInExec(
      "cudaGraphExecMemcpyNodeSetParams1D", exec, node, to,
      [&] { return plainCopy(addressOf(to), addressOf(from), bytes); });
}

KILN_CUDA cudaError_t cudaGraphAddMemcpyNodeToSymbol(
    cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *nodes,
    std::size_t count, const void *symbol, const void *from, std::size_t bytes,
    std::size_t offset, int) {
  return addNode("cudaGraphAddMemcpyNodeToSymbol", node, graph, nodes, nullptr,
                 count, [&] {
                   return plainCopy(symbolAt(symbol, offset, bytes),
                                    addressOf(from), bytes);
                 });
}
KILN_CUDA cudaError_t cudaGraphMemcpyNodeSetParamsToSymbol(
    cudaGraphNode_t node, const void *symbol, const void *from,
    std::size_t bytes, std::size_t offset, int) {
  return withNode("cudaGraphMemcpyNodeSetParamsToSymbol", node, from, [&] {
    replaceWork(*node, plainCopy(symbolAt(symbol, offset, bytes),
                                 addressOf(from), bytes));
  });
}
KILN_CUDA cudaError_t cudaGraphExecMemcpyNodeSetParamsToSymbol(
    cudaGraphExec_t exec, cudaGraphNode_t node, const void *symbol,
    const void *from, std::size_t bytes, std::size_t offset, int) {
  return setInExec("cudaGraphExecMemcpyNodeSetParamsToSymbol", exec, node, from,
                   [&] {
                     return plainCopy(symbolAt(symbol, offset, bytes),
                                      addressOf(from), bytes);
                   });
}
KILN_CUDA cudaError_t cudaGraphAddMemcpyNodeFromSymbol(
    cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *nodes,
    std::size_t count, void *to, const void *symbol, std::size_t bytes,
    std::size_t offset, int) {
  return addNode("cudaGraphAddMemcpyNodeFromSymbol", node, graph, nodes,
                 nullptr, count, [&] {
                   return plainCopy(addressOf(to),
                                    symbolAt(symbol, offset, bytes), bytes);
                 });
}
KILN_CUDA cudaError_t cudaGraphMemcpyNodeSetParamsFromSymbol(
    cudaGraphNode_t node, void *to, const void *symbol, std::size_t bytes,
    std::size_t offset, int) {
  return withNode("cudaGraphMemcpyNodeSetParamsFromSymbol", node, to, [&] {
    replaceWork(*node, plainCopy(addressOf(to),
                                 symbolAt(symbol, offset, bytes), bytes));
  });
}
KILN_CUDA cudaError_t cudaGraphExecMemcpyNodeSetParamsFromSymbol(
    cudaGraphExec_t exec, cudaGraphNode_t node, void *to, const void *symbol,
    std::size_t bytes, std::size_t offset, int) {
  return setInExec("cudaGraphExecMemcpyNodeSetParamsFromSymbol", exec, node, to,
                   [&] {
                     return plainCopy(addressOf(to),
                                      symbolAt(symbol, offset, bytes), bytes);
                   });
}

// Sets.

KILN_CUDA cudaError_t cudaGraphAddMemsetNode(
    cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *nodes,
    std::size_t count, const cudaMemsetParams *parameters) {
  if (!parameters)
    return noteError(cudaErrorInvalidValue);
  return addNode("cudaGraphAddMemsetNode", node, graph, nodes, nullptr, count,
                 [&] { return workOf(*parameters); });
}
KILN_CUDA cudaError_t cudaGraphMemsetNodeGetParams(
    cudaGraphNode_t node, cudaMemsetParams *parameters) {
  return withNode("cudaGraphMemsetNodeGetParams", node, parameters, [&] {
    workOf<FillWork>(node);
    *parameters = fillParametersOf(node->work);
  });
}
KILN_CUDA cudaError_t cudaGraphMemsetNodeSetParams(
    cudaGraphNode_t node, const cudaMemsetParams *parameters) {
  return withNode("cudaGraphMemsetNodeSetParams", node, parameters,
                  [&] { replaceWork(*node, workOf(*parameters)); });
}
KILN_CUDA cudaError_t cudaGraphExecMemsetNodeSetParams(
    cudaGraphExec_t exec, cudaGraphNode_t node,
    const cudaMemsetParams *parameters) {
  return setInExec("cudaGraphExecMemsetNodeSetParams", exec, node, parameters,
                   [&] { return workOf(*parameters); });
}

// Functions of the host.

KILN_CUDA cudaError_t cudaGraphAddHostNode(
    cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *nodes,
    std::size_t count, const cudaHostNodeParams *parameters) {
  if (!parameters)
    return noteError(cudaErrorInvalidValue);
  return addNode("cudaGraphAddHostNode", node, graph, nodes, nullptr, count,
                 [&] { return workOf(*parameters); });
}
KILN_CUDA cudaError_t cudaGraphHostNodeGetParams(
    cudaGraphNode_t node, cudaHostNodeParams *parameters) {
  return withNode("cudaGraphHostNodeGetParams", node, parameters, [&] {
    workOf<HostWork>(node);
    *parameters = hostParametersOf(node->work);
  });
}
KILN_CUDA cudaError_t cudaGraphHostNodeSetParams(
    cudaGraphNode_t node, const cudaHostNodeParams *parameters) {
  return withNode("cudaGraphHostNodeSetParams", node, parameters,
                  [&] { replaceWork(*node, workOf(*parameters)); });
}
KILN_CUDA cudaError_t cudaGraphExecHostNodeSetParams(
    cudaGraphExec_t exec, cudaGraphNode_t node,
    const cudaHostNodeParams *parameters) {
  return setInExec("cudaGraphExecHostNodeSetParams", exec, node, parameters,
                   [&] { return workOf(*parameters); });
}

// Graphs in graphs.

KILN_CUDA cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t *node,
                                                 cudaGraph_t graph,
                                                 const cudaGraphNode_t *nodes,
                                                 std::size_t count,
                                                 cudaGraph_t child) {
  return addNode("cudaGraphAddChildGraphNode", node, graph, nodes, nullptr,
                 count, [&] { return childWorkOf(child); });
}
KILN_CUDA cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node,
                                                      cudaGraph_t *graph) {
  return withNode("cudaGraphChildGraphNodeGetGraph", node, graph,
                  [&] { *graph = workOf<ChildWork>(node).graph.get(); });
}
KILN_CUDA cudaError_t cudaGraphExecChildGraphNodeSetParams(
    cudaGraphExec_t exec, cudaGraphNode_t node, cudaGraph_t child) {
  return withNode("cudaGraphExecChildGraphNodeSetParams", node, child, [&] {
    checked(exec).updateChild(*node, checked(child));
  });
}

KILN_CUDA cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *node,
                                            cudaGraph_t graph,
                                            const cudaGraphNode_t *nodes,
                                            std::size_t count) {
  return addNode("cudaGraphAddEmptyNode", node, graph, nodes, nullptr, count,
                 [] { return EmptyWork{}; });
}

// Events.

static cudaEvent_t checkedEvent(cudaEvent_t event) {
  Handles::get().check(event, Handles::Kind::event);
  return event;
}

KILN_CUDA cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t *node,
                                                  cudaGraph_t graph,
                                                  const cudaGraphNode_t *nodes,
                                                  std::size_t count,
                                                  cudaEvent_t event) {
  return addNode("cudaGraphAddEventRecordNode", node, graph, nodes, nullptr,
                 count, [&] { return EventRecordWork{checkedEvent(event)}; });
}
KILN_CUDA cudaError_t cudaGraphEventRecordNodeGetEvent(cudaGraphNode_t node,
                                                       cudaEvent_t *event) {
  return withNode("cudaGraphEventRecordNodeGetEvent", node, event,
                  [&] { *event = workOf<EventRecordWork>(node).handle; });
}
KILN_CUDA cudaError_t cudaGraphEventRecordNodeSetEvent(cudaGraphNode_t node,
                                                       cudaEvent_t event) {
  return withNode("cudaGraphEventRecordNodeSetEvent", node, event, [&] {
    replaceWork(*node, EventRecordWork{checkedEvent(event)});
  });
}
KILN_CUDA cudaError_t cudaGraphExecEventRecordNodeSetEvent(
    cudaGraphExec_t exec, cudaGraphNode_t node, cudaEvent_t event) {
  return setInExec("cudaGraphExecEventRecordNodeSetEvent", exec, node, event,
                   [&] { return EventRecordWork{checkedEvent(event)}; });
}
KILN_CUDA cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t *node,
                                                cudaGraph_t graph,
                                                const cudaGraphNode_t *nodes,
                                                std::size_t count,
                                                cudaEvent_t event) {
  return addNode("cudaGraphAddEventWaitNode", node, graph, nodes, nullptr,
                 count, [&] { return EventWaitWork{checkedEvent(event)}; });
}
KILN_CUDA cudaError_t cudaGraphEventWaitNodeGetEvent(cudaGraphNode_t node,
                                                     cudaEvent_t *event) {
  return withNode("cudaGraphEventWaitNodeGetEvent", node, event,
                  [&] { *event = workOf<EventWaitWork>(node).handle; });
}
KILN_CUDA cudaError_t cudaGraphEventWaitNodeSetEvent(cudaGraphNode_t node,
                                                     cudaEvent_t event) {
  return withNode("cudaGraphEventWaitNodeSetEvent", node, event, [&] {
    replaceWork(*node, EventWaitWork{checkedEvent(event)});
  });
}
KILN_CUDA cudaError_t cudaGraphExecEventWaitNodeSetEvent(cudaGraphExec_t exec,
                                                         cudaGraphNode_t node,
                                                         cudaEvent_t event) {
  return setInExec("cudaGraphExecEventWaitNodeSetEvent", exec, node, event,
                   [&] { return EventWaitWork{checkedEvent(event)}; });
}

// Memory.

KILN_CUDA cudaError_t cudaGraphAddMemAllocNode(
    cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *nodes,
    std::size_t count, cudaMemAllocNodeParams *parameters) {
  if (!parameters)
    return noteError(cudaErrorInvalidValue);
  return addNode("cudaGraphAddMemAllocNode", node, graph, nodes, nullptr, count,
                 [&] { return workOf(*parameters); });
}
KILN_CUDA cudaError_t cudaGraphMemAllocNodeGetParams(
    cudaGraphNode_t node, cudaMemAllocNodeParams *parameters) {
  return withNode("cudaGraphMemAllocNodeGetParams", node, parameters, [&] {
    const auto &work = workOf<AllocWork>(node);
    *parameters = {};
    parameters->poolProps.allocType = 1; // pinned
    parameters->poolProps.location = {1, 0};
    parameters->bytesize = work.bytes;
    parameters->dptr = reinterpret_cast<void *>(work.address);
  });
}
KILN_CUDA cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t *node,
                                              cudaGraph_t graph,
                                              const cudaGraphNode_t *nodes,
                                              std::size_t count,
                                              void *pointer) {
  if (!pointer)
    return noteError(cudaErrorInvalidValue);
  return addNode("cudaGraphAddMemFreeNode", node, graph, nodes, nullptr, count,
                 [&] { return FreeWork{addressOf(pointer)}; });
}
KILN_CUDA cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node,
                                                    void *pointer) {
  return withNode("cudaGraphMemFreeNodeGetParams", node, pointer, [&] {
    *static_cast<std::uint64_t *>(pointer) = workOf<FreeWork>(node).address;
  });
}

// Nodes of any kind.

KILN_CUDA cudaError_t KILN_WITH_EDGES(cudaGraphAddNode)(
    cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *nodes,
    const cudaGraphEdgeData *edges, std::size_t count,
    cudaGraphNodeParams *parameters) {
  if (!parameters)
    return noteError(cudaErrorInvalidValue);
  return addNode("cudaGraphAddNode", node, graph, nodes, edges, count,
                 [&] { return workOf(*parameters, *graph); });
}
KILN_BEFORE_13(KILN_CUDA cudaError_t cudaGraphAddNode(
    cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *nodes,
    std::size_t count, cudaGraphNodeParams *parameters) {
  return cudaGraphAddNode_v2(node, graph, nodes, nullptr, count, parameters);
})
KILN_CUDA cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node,
                                             cudaGraphNodeParams *parameters) {
  return withNode("cudaGraphNodeSetParams", node, parameters, [&] {
    replaceWork(*node, workOf(*parameters, *node->graph));
  });
}
KILN_CUDA cudaError_t cudaGraphExecNodeSetParams(
    cudaGraphExec_t exec, cudaGraphNode_t node,
    cudaGraphNodeParams *parameters) {
  return setInExec("cudaGraphExecNodeSetParams", exec, node, parameters,
                   [&] { return workOf(*parameters, *node->graph); });
}

KILN_CUDA cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t exec,
                                              cudaGraphNode_t node,
                                              unsigned isEnabled) {
  return withNode("cudaGraphNodeSetEnabled", node, exec, [&] {
    GraphNode &own = checked(exec).own(*node);
    if (own.work.index() > cudaGraphNodeTypeMemset)
      throw CudaError(kInvalidValue,
                      "only kernels, copies and sets can be disabled");
    own.isEnabled = isEnabled != 0;
  });
}
KILN_CUDA cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t exec,
                                              cudaGraphNode_t node,
                                              unsigned *isEnabled) {
  return withNode("cudaGraphNodeGetEnabled", node, isEnabled, [&] {
    *isEnabled = checked(exec).own(*node).isEnabled;
  });
}
