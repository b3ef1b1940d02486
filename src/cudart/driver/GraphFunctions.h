// GraphFunctions: the runtime's functions of graphs, captures and pools, of which
// the driver's are made.
#pragma once

#include "cudart/MemPool.h"
#include "cudart/runtime/GraphTypes.h"

using cudaMemPool_t = kiln::cudart::MemPool *;

extern "C" {
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *, int);
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *, int);
cudaError_t cudaDeviceGraphMemTrim(int);
cudaError_t cudaDeviceSetMemPool(int, cudaMemPool_t);
cudaError_t cudaFreeAsync(void *, cudaStream_t);
cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t *, cudaGraph_t,
    const cudaGraphNode_t *, std::size_t, cudaGraph_t);
cudaError_t cudaGraphAddDependencies(cudaGraph_t, const cudaGraphNode_t *,
    const cudaGraphNode_t *, const cudaGraphEdgeData *, std::size_t);
cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *, cudaGraph_t,
    const cudaGraphNode_t *, std::size_t);
cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t *, cudaGraph_t,
    const cudaGraphNode_t *, std::size_t, cudaEvent_t);
cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t *, cudaGraph_t,
    const cudaGraphNode_t *, std::size_t, cudaEvent_t);
cudaError_t cudaGraphAddHostNode(cudaGraphNode_t *, cudaGraph_t,
    const cudaGraphNode_t *, std::size_t, const cudaHostNodeParams *);
cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *, cudaGraph_t,
    const cudaGraphNode_t *, std::size_t, const cudaKernelNodeParams *);
cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t *, cudaGraph_t,
    const cudaGraphNode_t *, std::size_t, cudaMemAllocNodeParams *);
cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t *, cudaGraph_t,
    const cudaGraphNode_t *, std::size_t, void *);
cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t *, cudaGraph_t,
    const cudaGraphNode_t *, std::size_t, const cudaMemcpy3DParms *);
cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t *, cudaGraph_t,
    const cudaGraphNode_t *, std::size_t, const cudaMemsetParams *);
cudaError_t cudaGraphAddNode(cudaGraphNode_t *, cudaGraph_t,
    const cudaGraphNode_t *, const cudaGraphEdgeData *, std::size_t,
    cudaGraphNodeParams *);
cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t, cudaGraph_t *);
cudaError_t cudaGraphClone(cudaGraph_t *, cudaGraph_t);
cudaError_t cudaGraphConditionalHandleCreate(unsigned long long *, cudaGraph_t,
    unsigned, unsigned);
cudaError_t cudaGraphCreate(cudaGraph_t *, unsigned);
cudaError_t cudaGraphDebugDotPrint(cudaGraph_t, const char *, unsigned);
cudaError_t cudaGraphDestroy(cudaGraph_t);
cudaError_t cudaGraphDestroyNode(cudaGraphNode_t);
cudaError_t cudaGraphEventRecordNodeGetEvent(cudaGraphNode_t, cudaEvent_t *);
cudaError_t cudaGraphEventRecordNodeSetEvent(cudaGraphNode_t, cudaEvent_t);
cudaError_t cudaGraphEventWaitNodeGetEvent(cudaGraphNode_t, cudaEvent_t *);
cudaError_t cudaGraphEventWaitNodeSetEvent(cudaGraphNode_t, cudaEvent_t);
cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t,
    cudaGraphNode_t, cudaGraph_t);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t);
cudaError_t cudaGraphExecEventRecordNodeSetEvent(cudaGraphExec_t,
    cudaGraphNode_t, cudaEvent_t);
cudaError_t cudaGraphExecEventWaitNodeSetEvent(cudaGraphExec_t, cudaGraphNode_t,
    cudaEvent_t);
cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t, unsigned long long *);
cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t, cudaGraphNode_t,
    const cudaHostNodeParams *);
cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t, cudaGraphNode_t,
    const cudaKernelNodeParams *);
cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t, cudaGraphNode_t,
    const cudaMemcpy3DParms *);
cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t, cudaGraphNode_t,
    const cudaMemsetParams *);
cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t, cudaGraphNode_t,
    cudaGraphNodeParams *);
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t, cudaGraph_t,
    cudaGraphExecUpdateResultInfo *);
cudaError_t cudaGraphGetEdges(cudaGraph_t, cudaGraphNode_t *, cudaGraphNode_t *,
    cudaGraphEdgeData *, std::size_t *);
cudaError_t cudaGraphGetNodes(cudaGraph_t, cudaGraphNode_t *, std::size_t *);
cudaError_t cudaGraphGetRootNodes(cudaGraph_t, cudaGraphNode_t *,
    std::size_t *);
cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t, cudaHostNodeParams *);
cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t,
    const cudaHostNodeParams *);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *, cudaGraph_t,
    unsigned long long);
cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t *, cudaGraph_t,
    cudaGraphInstantiateParams *);
cudaError_t cudaGraphKernelNodeCopyAttributes(cudaGraphNode_t, cudaGraphNode_t);
cudaError_t cudaGraphKernelNodeGetAttribute(cudaGraphNode_t, int,
    decltype(cudaLaunchAttribute::value) *);
cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t,
    cudaKernelNodeParams *);
cudaError_t cudaGraphKernelNodeSetAttribute(cudaGraphNode_t, int,
    const decltype(cudaLaunchAttribute::value) *);
cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t,
    const cudaKernelNodeParams *);
cudaError_t cudaGraphLaunch(cudaGraphExec_t, cudaStream_t);
cudaError_t cudaGraphMemAllocNodeGetParams(cudaGraphNode_t,
    cudaMemAllocNodeParams *);
cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t, void *);
cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t, cudaMemcpy3DParms *);
cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t,
    const cudaMemcpy3DParms *);
cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t, cudaMemsetParams *);
cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t,
    const cudaMemsetParams *);
cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t *, cudaGraphNode_t,
    cudaGraph_t);
cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t, cudaGraphNode_t *,
    cudaGraphEdgeData *, std::size_t *);
cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t, cudaGraphNode_t *,
    cudaGraphEdgeData *, std::size_t *);
cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t, cudaGraphNode_t,
    unsigned *);
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t, int *);
cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t, cudaGraphNode_t, unsigned);
cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t, cudaGraphNodeParams *);
cudaError_t cudaGraphReleaseUserObject(cudaGraph_t, cudaUserObject_t, unsigned);
cudaError_t cudaGraphRemoveDependencies(cudaGraph_t, const cudaGraphNode_t *,
    const cudaGraphNode_t *, const cudaGraphEdgeData *, std::size_t);
cudaError_t cudaGraphRetainUserObject(cudaGraph_t, cudaUserObject_t, unsigned,
    unsigned);
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t);
cudaError_t cudaMallocAsync(void **, std::size_t, cudaStream_t);
cudaError_t cudaMallocFromPoolAsync(void **, std::size_t, cudaMemPool_t,
    cudaStream_t);
cudaError_t cudaMemPoolCreate(cudaMemPool_t *, const cudaMemPoolProps *);
cudaError_t cudaMemPoolDestroy(cudaMemPool_t);
cudaError_t cudaMemPoolGetAccess(int *, cudaMemPool_t, cudaMemLocation *);
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t, int, void *);
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t, const cudaMemAccessDesc *,
    std::size_t);
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, int, void *);
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, std::size_t);
cudaError_t cudaStreamBeginCapture(cudaStream_t, int);
cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t, cudaGraph_t,
    const cudaGraphNode_t *, const cudaGraphEdgeData *, std::size_t, int);
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t *);
cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t, cudaGraphNode_t *,
    const cudaGraphEdgeData *, std::size_t, unsigned);
cudaError_t cudaThreadExchangeStreamCaptureMode(int *);
cudaError_t cudaUserObjectCreate(cudaUserObject_t *, void *, cudaHostFn_t,
    unsigned, unsigned);
cudaError_t cudaUserObjectRelease(cudaUserObject_t, unsigned);
cudaError_t cudaUserObjectRetain(cudaUserObject_t, unsigned);
}
