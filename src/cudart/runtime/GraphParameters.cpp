// GraphParameters: nodes of graphs in CUDA's structures.
#include "cudart/Handles.h"
#include "cudart/runtime/Call.h"
#include "cudart/runtime/GraphTypes.h"

#include <cstring>

namespace kiln::cudart {

Graph &checked(cudaGraph_t graph) {
  if (!graph || !Handles::get().has(graph, Handles::Kind::graph))
    throw CudaError(kInvalidValue, "the graph is none, or no longer");
  return *graph;
}

GraphNode &checked(cudaGraphNode_t node) {
  if (!node || !Handles::get().has(node, Handles::Kind::node))
    throw CudaError(kInvalidValue, "the node of a graph is none, or no longer");
  return *node;
}

GraphExec &checked(cudaGraphExec_t exec) {
  if (!exec || !Handles::get().has(exec, Handles::Kind::exec))
    throw CudaError(kInvalidValue, "the executable graph is none, or no "
                                   "longer");
  return *exec;
}

std::vector<GraphDependency> dependenciesOf(const cudaGraphNode_t *nodes,
                                            const cudaGraphEdgeData *edges,
                                            std::size_t count) {
  if (count && !nodes)
    throw CudaError(kInvalidValue, "there are no nodes to depend on");
  std::vector<GraphDependency> all;
  for (std::size_t i = 0; i < count; ++i)
    all.push_back({&checked(nodes[i]), edges ? edges[i] : GraphEdge{}});
  return all;
}

/// By pointers, or packed (cudaKernelNodeParams::extra).
static std::vector<void *> pointersOf(const Function &function,
                                      const EntryInfo &entry,
                                      void **parameters, void **extra) {
  std::vector<void *> pointers;
  char *packed = nullptr;
  std::size_t bytes = 0;
  for (; extra && *extra; extra += 2)
    if (*extra == reinterpret_cast<void *>(1))
      packed = static_cast<char *>(extra[1]);
    else if (*extra == reinterpret_cast<void *>(2))
      bytes = *static_cast<std::size_t *>(extra[1]);
  for (std::size_t i = 0; i < entry.parameter_bytes.size(); ++i) {
    if (packed &&
        entry.parameter_offsets[i] + entry.parameter_bytes[i] <= bytes)
      pointers.push_back(packed + entry.parameter_offsets[i]);
    else if (!packed && parameters && parameters[i])
      pointers.push_back(parameters[i]);
    else
      throw CudaError(kInvalidValue,
                      function.name + " was given too few parameters");
  }
  return pointers;
}

Work workOf(const cudaKernelNodeParams &parameters) {
  Launch launch;
  launch.function = Session::get().findFunction(parameters.func);
  if (!launch.function)
    throw CudaError(cudaErrorInvalidDeviceFunction,
                    "the node's function is no kernel of the program");
  const dim3 &grid = parameters.gridDim, &block = parameters.blockDim;
  launch.grid = {grid.x, grid.y, grid.z};
  launch.block = {block.x, block.y, block.z};
  launch.dynamicSmemBytes = parameters.sharedMemBytes;
  std::vector<void *> pointers =
      pointersOf(*launch.function, launch.function->entry(),
                 parameters.kernelParams, parameters.extra);
  launch.parameters = pointers.data();
  if (cudaError_t error = refusalOf(launch))
    throw CudaError(error, "the node's launch would be refused");
  KernelWork work(launch);
  work.handle = parameters.func;
  return work;
}

Work workOf(const cudaMemsetParams &parameters) {
  unsigned bytes = parameters.elementSize;
  if (bytes != 1 && bytes != 2 && bytes != 4)
    throw CudaError(kInvalidValue, "elements of a set have 1, 2 or 4 bytes");
  return FillWork{.to = addressOf(parameters.dst),
                  .pitch = parameters.pitch,
                  .value = parameters.value,
                  .elementBytes = bytes,
                  .width = parameters.width,
                  .height = parameters.height};
}

Work workOf(const cudaHostNodeParams &parameters) {
  if (!parameters.fn)
    throw CudaError(kInvalidValue, "a host node has no function");
  return HostWork{parameters.fn, parameters.userData};
}

Work childWorkOf(cudaGraph_t graph) {
  auto clone = std::make_shared<Graph>(checked(graph));
  clone->isChild = true;
  return ChildWork{std::move(clone)};
}

Work workOf(cudaMemAllocNodeParams &parameters) {
  if (!parameters.bytesize)
    throw CudaError(kInvalidValue, "a node allocates 0 bytes");
  std::uint64_t address = Session::get().holdAddress(parameters.bytesize);
  parameters.dptr = reinterpret_cast<void *>(address);
  return AllocWork{address, parameters.bytesize};
}

/// A conditional node has empty graphs, which the program fills.
static Work conditionalWorkOf(cudaConditionalNodeParams &parameters,
                              Graph &graph) {
  bool isKnown = false;
  for (const Graph::Condition &condition : graph.conditions)
    isKnown |= condition.handle == parameters.handle;
  std::size_t most = parameters.type == ConditionalWork::once   ? 2
                     : parameters.type == ConditionalWork::loop ? 1
                                                                : 65536;
  if (!isKnown || parameters.type < 0 ||
      parameters.type > ConditionalWork::choice || !parameters.size ||
      parameters.size > most)
    throw CudaError(kInvalidValue,
                    "a conditional node needs a handle of its graph, a type, "
                    "and a number of graphs that the type has");
  ConditionalWork work{parameters.handle,
                       static_cast<ConditionalWork::Kind>(parameters.type),
                       {}};
  static thread_local std::vector<cudaGraph_t> bodies;
  bodies.clear();
  for (unsigned i = 0; i < parameters.size; ++i) {
    work.bodies.push_back(std::make_shared<Graph>());
    work.bodies.back()->isChild = true;
    bodies.push_back(work.bodies.back().get());
  }
  parameters.phGraph_out = bodies.data();
  return work;
}

Work workOf(cudaGraphNodeParams &parameters, Graph &graph) {
  auto event = [&] {
    Handles::get().check(parameters.event, Handles::Kind::event);
    return parameters.event;
  };
  switch (parameters.type) {
  case cudaGraphNodeTypeKernel:
    return workOf(parameters.kernel);
  case cudaGraphNodeTypeMemcpy:
    return copyOf(parameters.memcpy.copyParams);
  case cudaGraphNodeTypeMemset:
    return workOf(parameters.memset);
  case cudaGraphNodeTypeHost:
    return workOf(parameters.host);
  case cudaGraphNodeTypeGraph:
    return childWorkOf(parameters.graph.graph);
  case cudaGraphNodeTypeEmpty:
    return EmptyWork{};
  case cudaGraphNodeTypeWaitEvent:
    return EventWaitWork{event()};
  case cudaGraphNodeTypeEventRecord:
    return EventRecordWork{event()};
  case cudaGraphNodeTypeMemAlloc:
    return workOf(parameters.alloc);
  case cudaGraphNodeTypeMemFree:
    return FreeWork{addressOf(parameters.freed)};
  case cudaGraphNodeTypeConditional:
    return conditionalWorkOf(parameters.conditional, graph);
  default:
    throw CudaError(kNotSupported,
                    "nodes of external semaphores and batches of memory "
                    "operations are not supported");
  }
}

cudaKernelNodeParams kernelParametersOf(const Work &work) {
  const auto &kernel = std::get<KernelWork>(work);
  auto shape = [](const std::array<std::uint32_t, 3> &size) {
    return dim3{size[0], size[1], size[2]};
  };
  return {kernel.handle,
          shape(kernel.launch.grid),
          shape(kernel.launch.block),
          kernel.launch.dynamicSmemBytes,
          const_cast<void **>(kernel.pointers.data()),
          nullptr};
}

cudaMemsetParams fillParametersOf(const Work &work) {
  const auto &fill = std::get<FillWork>(work);
  return {reinterpret_cast<void *>(fill.to), fill.pitch,  fill.value,
          fill.elementBytes,                 fill.width, fill.height};
}

cudaHostNodeParams hostParametersOf(const Work &work) {
  const auto &host = std::get<HostWork>(work);
  return {host.function, host.data};
}

cudaMemcpy3DParms copyParametersOf(const Work &work) {
  const auto &copy = std::get<CopyWork>(work);
  auto place = [&](std::uint64_t address, std::size_t pitch,
                   std::size_t slice) {
    return cudaPitchedPtr{reinterpret_cast<void *>(address), pitch, copy.width,
                          pitch ? slice / pitch : copy.height};
  };
  cudaMemcpy3DParms parameters{};
  parameters.srcPtr = place(copy.from, copy.fromPitch, copy.fromSlice);
  parameters.dstPtr = place(copy.to, copy.toPitch, copy.toSlice);
  parameters.extent = {copy.width, copy.height, copy.depth};
  parameters.kind = 4;
  return parameters;
}

void replaceWork(GraphNode &node, Work work) {
  if (node.work.index() != work.index())
    throw CudaError(kInvalidValue, "the node is of another kind");
  if (auto *kernel = std::get_if<KernelWork>(&work)) {
    // Attributes stay.
    const auto &before = std::get<KernelWork>(node.work);
    kernel->attributes = before.attributes;
    kernel->launch.cluster = before.launch.cluster;
    kernel->launch.isCooperative = before.launch.isCooperative;
  }
  node.work = std::move(work);
}

void setAttribute(KernelWork &work, int id,
                  const decltype(cudaLaunchAttribute::value) &value) {
  std::memcpy(work.attributes[id].data(), &value, sizeof(value));
  readAttribute(work.launch, id, value);
}

} // namespace kiln::cudart
