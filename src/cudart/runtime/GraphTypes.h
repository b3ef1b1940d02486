// GraphTypes: the types of CUDA's interface of graphs and of memory pools, which
// the driver's shares but for copies.
#pragma once

#include "cudart/CudaError.h"
#include "cudart/graph/GraphExec.h"
#include "cudart/runtime/CudaTypes.h"

using cudaGraph_t = kiln::cudart::Graph *;
using cudaGraphNode_t = kiln::cudart::GraphNode *;
using cudaGraphExec_t = kiln::cudart::GraphExec *;
using cudaUserObject_t = kiln::cudart::UserObject *;
using cudaGraphEdgeData = kiln::cudart::GraphEdge;
using cudaHostFn_t = void (*)(void *);

struct cudaKernelNodeParams {
  const void *func;
  dim3 gridDim, blockDim;
  unsigned sharedMemBytes;
  void **kernelParams, **extra;
};
struct cudaMemsetParams {
  void *dst;
  std::size_t pitch;
  unsigned value, elementSize;
  std::size_t width, height;
};
struct cudaHostNodeParams {
  cudaHostFn_t fn;
  void *userData;
};
struct cudaMemLocation {
  int type; // 0 none, 1 device, 2 host
  int id;
};
struct cudaMemAccessDesc {
  cudaMemLocation location;
  int flags; // 0 none, 1 read, 3 read and write
};
struct cudaMemPoolProps {
  int allocType, handleTypes;
  cudaMemLocation location;
  void *win32SecurityAttributes;
  std::size_t maxSize;
  unsigned short usage;
  unsigned char reserved[54];
};
struct cudaMemAllocNodeParams {
  cudaMemPoolProps poolProps;
  const cudaMemAccessDesc *accessDescs;
  std::size_t accessDescCount, bytesize;
  void *dptr;
};
struct cudaConditionalNodeParams {
  unsigned long long handle;
  int type;
  unsigned size;
  cudaGraph_t *phGraph_out;
};

enum cudaGraphNodeType : int {
  cudaGraphNodeTypeKernel = 0,
  cudaGraphNodeTypeMemcpy = 1,
  cudaGraphNodeTypeMemset = 2,
  cudaGraphNodeTypeHost = 3,
  cudaGraphNodeTypeGraph = 4,
  cudaGraphNodeTypeEmpty = 5,
  cudaGraphNodeTypeWaitEvent = 6,
  cudaGraphNodeTypeEventRecord = 7,
  cudaGraphNodeTypeMemAlloc = 10,
  cudaGraphNodeTypeMemFree = 11,
  cudaGraphNodeTypeConditional = 13,
};
struct cudaGraphNodeParams {
  int type;
  int reserved0[3];
  union {
    long long reserved1[29];
    cudaKernelNodeParams kernel;
    struct {
      int flags, reserved[3];
      cudaMemcpy3DParms copyParams;
    } memcpy;
    cudaMemsetParams memset;
    cudaHostNodeParams host;
    struct {
      cudaGraph_t graph;
      int ownership;
    } graph;
    cudaEvent_t event;
    cudaMemAllocNodeParams alloc;
    void *freed;
    cudaConditionalNodeParams conditional;
  };
  long long reserved2;
};
struct cudaGraphInstantiateParams {
  unsigned long long flags;
  cudaStream_t uploadStream;
  cudaGraphNode_t errNode_out;
  int result_out;
};
struct cudaGraphExecUpdateResultInfo {
  int result;
  cudaGraphNode_t errorNode, errorFromNode;
};

namespace kiln::cudart {

// The work that a structure of the program's describes. All throw CudaError.
Work workOf(const cudaKernelNodeParams &parameters);
Work workOf(const cudaMemsetParams &parameters);
Work workOf(const cudaHostNodeParams &parameters);
/// Children are clones.
Work childWorkOf(cudaGraph_t graph);
/// A place in memory that the node makes there; the address is written back.
Work workOf(cudaMemAllocNodeParams &parameters);
/// Of any kind; what a node makes is written back.
Work workOf(cudaGraphNodeParams &parameters, Graph &graph);

// And the structures of work.
cudaKernelNodeParams kernelParametersOf(const Work &work);
cudaMemsetParams fillParametersOf(const Work &work);
cudaHostNodeParams hostParametersOf(const Work &work);
cudaMemcpy3DParms copyParametersOf(const Work &work);

/// Let a node do something else of the same kind.
void replaceWork(GraphNode &node, Work work);

// Handles of the program's. All throw CudaError.
Graph &checked(cudaGraph_t graph);
GraphNode &checked(cudaGraphNode_t node);
GraphExec &checked(cudaGraphExec_t exec);
/// `edges` may be null.
std::vector<GraphDependency> dependenciesOf(const cudaGraphNode_t *nodes,
                                            const cudaGraphEdgeData *edges,
                                            std::size_t count);
/// Its launch attributes as CUDA numbers them.
void setAttribute(KernelWork &work, int id,
                  const decltype(cudaLaunchAttribute::value) &value);

/// What a node is of the kind `Kind`; throws where it is another.
template <typename Kind> Kind &workOf(cudaGraphNode_t node) {
  if (auto *work = std::get_if<Kind>(&checked(node).work))
    return *work;
  throw CudaError(kInvalidValue, "the node is of another kind");
}

} // namespace kiln::cudart
