// Graphs: the driver's functions of graphs, captures and pools are the runtime's
// under other names. Structures begin alike; copies have one of their own.
#include "cudart/driver/Driver.h"
#include "cudart/driver/GraphFunctions.h"

#include <cstring>

using namespace kiln::cudart;

namespace {

template <auto Function> struct Same;
template <typename Result, typename... Arguments,
          Result (*Function)(Arguments...)>
struct Same<Function> {
  static Result call(Arguments... arguments) { return Function(arguments...); }
};

struct CudaMemcpy3D { // CUDA_MEMCPY3D
  struct Place {
    std::size_t x, y, z, lod;
    int type; // 1 host, 2 device, 3 array, 4 unified
    void *host;
    CUdeviceptr device;
    void *array, *reserved;
    std::size_t pitch, height;

    cudaPitchedPtr base() const {
      void *at = type == 1 ? host : reinterpret_cast<void *>(device);
      return {at, pitch, pitch, height};
    }
  } from, to;
  std::size_t width, height, depth;
};

} // namespace

/// A copy as the runtime has it.
static cudaMemcpy3DParms runtimeOf(const CudaMemcpy3D &copy) {
  constexpr int kArray = 3;
  cudaMemcpy3DParms parameters{};
  parameters.srcArray = copy.from.type == kArray ? copy.from.array : nullptr;
  parameters.dstArray = copy.to.type == kArray ? copy.to.array : nullptr;
  parameters.srcPos = {copy.from.x, copy.from.y, copy.from.z};
  parameters.dstPos = {copy.to.x, copy.to.y, copy.to.z};
  parameters.srcPtr = copy.from.base();
  parameters.dstPtr = copy.to.base();
  parameters.extent = {copy.width, copy.height, copy.depth};
  parameters.kind = 4;
  return parameters;
}

#define KILN_SAME(driver, runtime) KILN_CUDA_THROUGH(driver, Same<&runtime>::call)
#include "cudart/driver/GraphFunctions.def"

KILN_CUDA CUresult cuGraphAddMemcpyNode(cudaGraphNode_t *node,
                                        cudaGraph_t graph,
                                        const cudaGraphNode_t *nodes,
                                        std::size_t count,
                                        const CudaMemcpy3D *copy, void *) {
  if (!copy)
    return CUDA_ERROR_INVALID_VALUE;
  cudaMemcpy3DParms parameters = runtimeOf(*copy);
  return cudaGraphAddMemcpyNode(node, graph, nodes, count, &parameters);
}
KILN_CUDA CUresult cuGraphMemcpyNodeGetParams(cudaGraphNode_t node,
                                              CudaMemcpy3D *copy) {
  cudaMemcpy3DParms parameters{};
  if (!copy)
    return CUDA_ERROR_INVALID_VALUE;
  if (CUresult error = cudaGraphMemcpyNodeGetParams(node, &parameters))
    return error;
  auto place = [](const cudaPitchedPtr &base) {
    CudaMemcpy3D::Place place{};
    place.type = 4;
    place.device = reinterpret_cast<CUdeviceptr>(base.ptr);
    place.pitch = base.pitch;
    place.height = base.ysize;
    return place;
  };
  *copy = {place(parameters.srcPtr), place(parameters.dstPtr),
           parameters.extent.width, parameters.extent.height,
           parameters.extent.depth};
  return cudaSuccess;
}
KILN_CUDA CUresult cuGraphMemcpyNodeSetParams(cudaGraphNode_t node,
                                              const CudaMemcpy3D *copy) {
  if (!copy)
    return CUDA_ERROR_INVALID_VALUE;
  cudaMemcpy3DParms parameters = runtimeOf(*copy);
  return cudaGraphMemcpyNodeSetParams(node, &parameters);
}
KILN_CUDA CUresult cuGraphExecMemcpyNodeSetParams(cudaGraphExec_t exec,
                                                  cudaGraphNode_t node,
                                                  const CudaMemcpy3D *copy,
                                                  void *) {
  if (!copy)
    return CUDA_ERROR_INVALID_VALUE;
  cudaMemcpy3DParms parameters = runtimeOf(*copy);
  return cudaGraphExecMemcpyNodeSetParams(exec, node, &parameters);
}

// With a context behind what the runtime has.
KILN_CUDA CUresult cuGraphAddMemsetNode(cudaGraphNode_t *node,
                                        cudaGraph_t graph,
                                        const cudaGraphNode_t *nodes,
                                        std::size_t count,
                                        const cudaMemsetParams *parameters,
                                        void *) {
  return cudaGraphAddMemsetNode(node, graph, nodes, count, parameters);
}
KILN_CUDA CUresult cuGraphExecMemsetNodeSetParams(
    cudaGraphExec_t exec, cudaGraphNode_t node,
    const cudaMemsetParams *parameters, void *) {
  return cudaGraphExecMemsetNodeSetParams(exec, node, parameters);
}
KILN_CUDA CUresult cuGraphConditionalHandleCreate(unsigned long long *handle,
                                                  cudaGraph_t graph, void *,
                                                  unsigned value,
                                                  unsigned flags) {
  return cudaGraphConditionalHandleCreate(handle, graph, value, flags);
}

namespace {
/// CUDA_KERNEL_NODE_PARAMS of version 2: a kernel may stand for the function.
struct KernelNode {
  cudaKernelNodeParams runtime;
  CUfunction kernel;
  void *context;
};
} // namespace

/// With the function, whichever way it was given.
static const cudaKernelNodeParams *runtimeOf(const KernelNode *node,
                                             cudaKernelNodeParams &copy) {
  if (!node)
    return nullptr;
  copy = node->runtime;
  if (!copy.func)
    copy.func = node->kernel;
  return &copy;
}
KILN_CUDA CUresult cuGraphAddKernelNode_v2(cudaGraphNode_t *node,
                                           cudaGraph_t graph,
                                           const cudaGraphNode_t *nodes,
                                           std::size_t count,
                                           const KernelNode *kernel) {
  cudaKernelNodeParams copy;
  return cudaGraphAddKernelNode(node, graph, nodes, count,
                                runtimeOf(kernel, copy));
}
KILN_CUDA CUresult cuGraphKernelNodeSetParams_v2(cudaGraphNode_t node,
                                                 const KernelNode *kernel) {
  cudaKernelNodeParams copy;
  return cudaGraphKernelNodeSetParams(node, runtimeOf(kernel, copy));
}
KILN_CUDA CUresult cuGraphExecKernelNodeSetParams_v2(cudaGraphExec_t exec,
                                                     cudaGraphNode_t node,
                                                     const KernelNode *kernel) {
  cudaKernelNodeParams copy;
  return cudaGraphExecKernelNodeSetParams(exec, node, runtimeOf(kernel, copy));
}
KILN_CUDA CUresult cuGraphKernelNodeGetParams_v2(cudaGraphNode_t node,
                                                 KernelNode *kernel) {
  if (!kernel)
    return CUDA_ERROR_INVALID_VALUE;
  kernel->kernel = nullptr;
  kernel->context = nullptr;
  return cudaGraphKernelNodeGetParams(node, &kernel->runtime);
}

/// A node of any kind as the runtime has it.
static cudaGraphNodeParams runtimeOf(const cudaGraphNodeParams &node) {
  cudaGraphNodeParams copy = node;
  if (node.type == cudaGraphNodeTypeKernel && !copy.kernel.func) {
    KernelNode kernel;
    std::memcpy(static_cast<void *>(&kernel), node.reserved1, sizeof(kernel));
    copy.kernel.func = kernel.kernel;
  }
  if (node.type == cudaGraphNodeTypeMemcpy) {
    // Behind flags, a reserved word and a context.
    CudaMemcpy3D driver;
    std::memcpy(&driver, reinterpret_cast<const char *>(node.reserved1) + 16,
                sizeof(driver));
    copy.memcpy.copyParams = runtimeOf(driver);
  }
  return copy;
}
KILN_CUDA CUresult cuGraphAddNode_v2(cudaGraphNode_t *node, cudaGraph_t graph,
                                     const cudaGraphNode_t *nodes,
                                     const cudaGraphEdgeData *edges,
                                     std::size_t count,
                                     cudaGraphNodeParams *parameters) {
  if (!parameters)
    return CUDA_ERROR_INVALID_VALUE;
  cudaGraphNodeParams copy = runtimeOf(*parameters);
  CUresult error = cudaGraphAddNode(node, graph, nodes, edges, count, &copy);
  // What the node has made.
  parameters->alloc.dptr = parameters->type == cudaGraphNodeTypeMemAlloc
                               ? copy.alloc.dptr
                               : parameters->alloc.dptr;
  if (parameters->type == cudaGraphNodeTypeConditional)
    parameters->conditional.phGraph_out = copy.conditional.phGraph_out;
  return error;
}
KILN_CUDA CUresult cuGraphNodeSetParams(cudaGraphNode_t node,
                                        cudaGraphNodeParams *parameters) {
  if (!parameters)
    return CUDA_ERROR_INVALID_VALUE;
  cudaGraphNodeParams copy = runtimeOf(*parameters);
  return cudaGraphNodeSetParams(node, &copy);
}
KILN_CUDA CUresult cuGraphExecNodeSetParams(cudaGraphExec_t exec,
                                            cudaGraphNode_t node,
                                            cudaGraphNodeParams *parameters) {
  if (!parameters)
    return CUDA_ERROR_INVALID_VALUE;
  cudaGraphNodeParams copy = runtimeOf(*parameters);
  return cudaGraphExecNodeSetParams(exec, node, &copy);
}

// Before there were edges with data.
KILN_CUDA CUresult cuGraphAddDependencies(cudaGraph_t graph,
                                          const cudaGraphNode_t *from,
                                          const cudaGraphNode_t *to,
                                          std::size_t count) {
  return cudaGraphAddDependencies(graph, from, to, nullptr, count);
}
KILN_CUDA CUresult cuGraphRemoveDependencies(cudaGraph_t graph,
                                             const cudaGraphNode_t *from,
                                             const cudaGraphNode_t *to,
                                             std::size_t count) {
  return cudaGraphRemoveDependencies(graph, from, to, nullptr, count);
}
KILN_CUDA CUresult cuGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from,
                                   cudaGraphNode_t *to, std::size_t *count) {
  return cudaGraphGetEdges(graph, from, to, nullptr, count);
}
KILN_CUDA CUresult cuGraphNodeGetDependencies(cudaGraphNode_t node,
                                              cudaGraphNode_t *nodes,
                                              std::size_t *count) {
  return cudaGraphNodeGetDependencies(node, nodes, nullptr, count);
}
KILN_CUDA CUresult cuGraphNodeGetDependentNodes(cudaGraphNode_t node,
                                                cudaGraphNode_t *nodes,
                                                std::size_t *count) {
  return cudaGraphNodeGetDependentNodes(node, nodes, nullptr, count);
}
