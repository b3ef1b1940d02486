// StreamCaptures: the functions that begin, end and look at captures.
#include "cudart/runtime/Call.h"
#include "cudart/runtime/GraphTypes.h"

using namespace kiln::cudart;

KILN_CUDA cudaError_t cudaStreamBeginCapture(cudaStream_t stream, int mode) {
  return call("cudaStreamBeginCapture", [&] {
    StreamCapture::begin(streamHandleOf(stream),
                         static_cast<CaptureMode>(mode));
    return cudaSuccess;
  });
}
KILN_CUDA_PER_THREAD(cudaStreamBeginCapture, _ptsz)

KILN_CUDA cudaError_t cudaStreamBeginCaptureToGraph(
    cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t *nodes,
    const cudaGraphEdgeData *edges, std::size_t count, int mode) {
  return call("cudaStreamBeginCaptureToGraph", [&] {
    StreamCapture::begin(streamHandleOf(stream), checked(graph),
                         dependenciesOf(nodes, edges, count),
                         static_cast<CaptureMode>(mode));
    return cudaSuccess;
  });
}
KILN_CUDA_PER_THREAD(cudaStreamBeginCaptureToGraph, _ptsz)

KILN_CUDA cudaError_t cudaStreamEndCapture(cudaStream_t stream,
                                           cudaGraph_t *graph) {
  return call("cudaStreamEndCapture", [&]() -> cudaError_t {
    CudaStream *handle = streamHandleOf(stream);
    // Whoever captures into a graph has it.
    if (!graph && !StreamCapture::isIntoGraph(handle))
      return cudaErrorInvalidValue;
    if (graph)
      *graph = nullptr;
    Graph *captured = StreamCapture::end(handle);
    if (graph)
      *graph = captured;
    return cudaSuccess;
  });
}
KILN_CUDA_PER_THREAD(cudaStreamEndCapture, _ptsz)

KILN_CUDA cudaError_t cudaStreamIsCapturing(cudaStream_t stream, int *status) {
  return call("cudaStreamIsCapturing", [&]() -> cudaError_t {
    if (!status)
      return cudaErrorInvalidValue;
    CudaStream *handle = streamHandleOf(stream);
    if (!handle)
      StreamCapture::of(nullptr); // throws where a blocking stream is captured
    *status = static_cast<int>(StreamCapture::statusOf(handle));
    return cudaSuccess;
  });
}
KILN_CUDA_PER_THREAD(cudaStreamIsCapturing, _ptsz)

KILN_CUDA cudaError_t cudaThreadExchangeStreamCaptureMode(int *mode) {
  return call("cudaThreadExchangeStreamCaptureMode", [&]() -> cudaError_t {
    if (!mode)
      return cudaErrorInvalidValue;
    *mode = static_cast<int>(
        StreamCapture::exchangeMode(static_cast<CaptureMode>(*mode)));
    return cudaSuccess;
  });
}

namespace {
/// What the next node of a stream would depend on, for programs to look at
/// until they ask again.
struct Depended {
  std::vector<cudaGraphNode_t> nodes;
  std::vector<cudaGraphEdgeData> edges;
};
} // namespace

static Depended &dependedOf(const CudaStream &stream) {
  thread_local Depended depended;
  depended = {};
  for (const GraphDependency &one : stream.point.dependencies) {
    depended.nodes.push_back(one.node);
    depended.edges.push_back(one.edge);
  }
  return depended;
}

/// The newest form. Whoever cannot take edges has null for them.
KILN_CUDA cudaError_t kilnCudaCaptureInfo(cudaStream_t stream, int *status,
                               unsigned long long *id, cudaGraph_t *graph,
                               const cudaGraphNode_t **nodes,
                               const cudaGraphEdgeData **edges,
                               std::size_t *count) {
  return call("cudaStreamGetCaptureInfo", [&]() -> cudaError_t {
    if (!status)
      return cudaErrorInvalidValue;
    std::lock_guard lock(graphMutex());
    CudaStream *handle = streamHandleOf(stream);
    if (!handle)
      StreamCapture::of(nullptr); // throws where a blocking stream is captured
    CaptureStatus state = StreamCapture::statusOf(handle);
    *status = static_cast<int>(state);
    if (state != CaptureStatus::active)
      return cudaSuccess;
    Depended &depended = dependedOf(*handle);
    bool isPlain = true;
    for (const cudaGraphEdgeData &edge : depended.edges)
      isPlain &= edge == cudaGraphEdgeData();
    if (nodes && !edges && !isPlain)
      return cudaErrorLossyQuery;
    if (id)
      *id = handle->point.capture->id();
    if (graph)
      *graph = handle->point.capture->graph();
    if (nodes)
      *nodes = depended.nodes.data();
    if (edges)
      *edges = isPlain ? nullptr : depended.edges.data();
    if (count)
      *count = depended.nodes.size();
    return cudaSuccess;
  });
}

#if KILN_CUDART_MAJOR >= 13
KILN_CUDA cudaError_t cudaStreamGetCaptureInfo(
    cudaStream_t stream, int *status, unsigned long long *id,
    cudaGraph_t *graph, const cudaGraphNode_t **nodes,
    const cudaGraphEdgeData **edges, std::size_t *count) {
  return kilnCudaCaptureInfo(stream, status, id, graph, nodes, edges, count);
}
KILN_CUDA_PER_THREAD(cudaStreamGetCaptureInfo, _ptsz)
#else
KILN_CUDA cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, int *status,
                                               unsigned long long *id) {
  return kilnCudaCaptureInfo(stream, status, id, nullptr, nullptr, nullptr, nullptr);
}
KILN_CUDA_PER_THREAD(cudaStreamGetCaptureInfo, _ptsz)
KILN_CUDA cudaError_t cudaStreamGetCaptureInfo_v2(
    cudaStream_t stream, int *status, unsigned long long *id,
    cudaGraph_t *graph, const cudaGraphNode_t **nodes, std::size_t *count) {
  return kilnCudaCaptureInfo(stream, status, id, graph, nodes, nullptr, count);
}
KILN_CUDA_PER_THREAD(cudaStreamGetCaptureInfo_v2, _ptsz)
KILN_CUDA cudaError_t cudaStreamGetCaptureInfo_v3(
    cudaStream_t stream, int *status, unsigned long long *id,
    cudaGraph_t *graph, const cudaGraphNode_t **nodes,
    const cudaGraphEdgeData **edges, std::size_t *count) {
  return kilnCudaCaptureInfo(stream, status, id, graph, nodes, edges, count);
}
KILN_CUDA_PER_THREAD(cudaStreamGetCaptureInfo_v3, _ptsz)
#endif

KILN_CUDA cudaError_t KILN_WITH_EDGES(cudaStreamUpdateCaptureDependencies)(
    cudaStream_t stream, cudaGraphNode_t *nodes,
    const cudaGraphEdgeData *edges, std::size_t count, unsigned flags) {
  return call("cudaStreamUpdateCaptureDependencies", [&]() -> cudaError_t {
    constexpr unsigned kSet = 1;
    if (flags & ~kSet)
      return cudaErrorInvalidValue;
    std::lock_guard lock(graphMutex());
    CudaStream *handle = streamHandleOf(stream);
    StreamCapture *capture = StreamCapture::of(handle);
    if (!capture)
      return kIllegalState;
    capture->depend(handle, dependenciesOf(nodes, edges, count), flags == kSet);
    return cudaSuccess;
  });
}
#if KILN_CUDART_MAJOR >= 13
KILN_CUDA_PER_THREAD(cudaStreamUpdateCaptureDependencies, _ptsz)
#else
KILN_CUDA_PER_THREAD(cudaStreamUpdateCaptureDependencies_v2, _ptsz)
KILN_CUDA cudaError_t cudaStreamUpdateCaptureDependencies(
    cudaStream_t stream, cudaGraphNode_t *nodes, std::size_t count,
    unsigned flags) {
  return cudaStreamUpdateCaptureDependencies_v2(stream, nodes, nullptr, count,
                                                flags);
}
KILN_CUDA_PER_THREAD(cudaStreamUpdateCaptureDependencies, _ptsz)
#endif
