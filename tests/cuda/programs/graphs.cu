// graphs: graphs beside the same work without one: captured, built of nodes,
// cloned, changed and updated.
// status: 0
#include "check.h"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>
#include <string>
#include <vector>

constexpr int N = 256;

__global__ void scale(int *x, int by) { x[threadIdx.x] *= by; }
__global__ void add(int *x, const int *y) { x[threadIdx.x] += y[threadIdx.x]; }
__global__ void put(int *x, int value) { x[threadIdx.x] = value; }
__device__ int offset;
__global__ void add_offset(int *x) { x[threadIdx.x] += offset; }

static void count(void *data) { ++*static_cast<int *>(data); }

// A fork into another stream and a join, with every kind of work.
struct Data {
  int *x, *y, *host;
  int calls = 0;
};
static void work(Data &data, cudaStream_t one, cudaStream_t two,
                 cudaEvent_t forked, cudaEvent_t joined) {
  OK(cudaMemsetAsync(data.x, 1, N * sizeof(int), one));
  OK(cudaEventRecord(forked, one));
  OK(cudaStreamWaitEvent(two, forked, 0));
  put<<<1, N, 0, two>>>(data.y, 5);
  scale<<<1, N, 0, two>>>(data.y, 3);
  scale<<<1, N, 0, one>>>(data.x, 2);
  OK(cudaEventRecord(joined, two));
  OK(cudaStreamWaitEvent(one, joined, 0));
  add<<<1, N, 0, one>>>(data.x, data.y);
  OK(cudaLaunchHostFunc(one, count, &data.calls));
  OK(cudaMemcpyAsync(data.host, data.x, N * sizeof(int),
                     cudaMemcpyDeviceToHost, one));
}

static Data make() {
  Data data;
  OK(cudaMalloc(&data.x, N * sizeof(int)));
  OK(cudaMalloc(&data.y, N * sizeof(int)));
  OK(cudaMallocHost(&data.host, N * sizeof(int)));
  std::memset(data.host, 0, N * sizeof(int));
  return data;
}

static std::vector<cudaGraphNode_t> nodes_of(cudaGraph_t graph) {
  std::size_t count = 0;
  OK(cudaGraphGetNodes(graph, nullptr, &count));
  std::vector<cudaGraphNode_t> nodes(count);
  OK(cudaGraphGetNodes(graph, nodes.data(), &count));
  return nodes;
}

static cudaGraphExec_t instantiate(cudaGraph_t graph) {
  cudaGraphExec_t exec;
  OK(cudaGraphInstantiate(&exec, graph, 0));
  return exec;
}

static void captured() {
  Data twin = make(), data = make();
  cudaStream_t one, two;
  OK(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
  OK(cudaStreamCreate(&two));
  cudaEvent_t forked, joined;
  OK(cudaEventCreate(&forked));
  OK(cudaEventCreate(&joined));
  work(twin, one, two, forked, joined);
  OK(cudaDeviceSynchronize());
  cudaGraph_t graph;
  for (auto mode : {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal,
                    cudaStreamCaptureModeRelaxed}) {
    OK(cudaStreamBeginCapture(one, mode));
    work(data, one, two, forked, joined);
    cudaStreamCaptureStatus status;
    OK(cudaStreamIsCapturing(two, &status));
    CHECK(status == cudaStreamCaptureStatusActive);
    OK(cudaStreamEndCapture(one, &graph));
    OK(cudaStreamIsCapturing(one, &status));
    CHECK(status == cudaStreamCaptureStatusNone);
    CHECK(data.calls == 0 && data.host[0] == 0); // nothing was done
    if (mode != cudaStreamCaptureModeRelaxed)
      OK(cudaGraphDestroy(graph));
  }
  CHECK(nodes_of(graph).size() == 7);
  std::size_t edges = 0, roots = 0;
  OK(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges));
  OK(cudaGraphGetRootNodes(graph, nullptr, &roots));
  CHECK(edges == 7 && roots == 1);
  cudaGraphExec_t exec = instantiate(graph);
  OK(cudaGraphDestroy(graph)); // the instance stays
  for (int i = 1; i <= 3; ++i) {
    OK(cudaMemset(data.y, 0, N * sizeof(int)));
    std::memset(data.host, 0, N * sizeof(int));
    OK(cudaGraphLaunch(exec, i == 2 ? nullptr : one));
    OK(cudaStreamSynchronize(i == 2 ? nullptr : one));
    CHECK(data.calls == i && twin.calls == 1);
    CHECK(std::memcmp(data.host, twin.host, N * sizeof(int)) == 0);
    CHECK(data.host[3] == 0x01010101 * 2 + 15);
  }
  // A graph that is launched in a capture is a node.
  OK(cudaStreamBeginCapture(two, cudaStreamCaptureModeGlobal));
  OK(cudaGraphLaunch(exec, two));
  OK(cudaGraphLaunch(exec, two));
  OK(cudaStreamEndCapture(two, &graph));
  auto children = nodes_of(graph);
  cudaGraphNodeType type;
  OK(cudaGraphNodeGetType(children[1], &type));
  CHECK(children.size() == 2 && type == cudaGraphNodeTypeGraph);
  cudaGraph_t child;
  OK(cudaGraphChildGraphNodeGetGraph(children[0], &child));
  CHECK(nodes_of(child).size() == 7);
  CHECK(cudaGraphDestroy(child) == cudaErrorInvalidValue);
  cudaGetLastError();
  cudaGraphExec_t twice = instantiate(graph);
  OK(cudaGraphLaunch(twice, one));
  OK(cudaStreamSynchronize(one));
  CHECK(data.calls == 5);
  OK(cudaGraphExecDestroy(twice));
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(graph));
  OK(cudaStreamDestroy(one));
  OK(cudaStreamDestroy(two));
}

static void built() {
  Data data = make();
  int by = 3, value = 7;
  cudaGraph_t graph;
  OK(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t set, first, second, down, host, empty;
  cudaMemsetParams fill = {};
  fill.dst = data.y;
  fill.elementSize = 4;
  fill.value = 100;
  fill.width = N;
  fill.height = 1;
  OK(cudaGraphAddMemsetNode(&set, graph, nullptr, 0, &fill));
  void *put_arguments[] = {&data.x, &value};
  cudaKernelNodeParams kernel = {};
  kernel.func = reinterpret_cast<void *>(put);
  kernel.gridDim = 1;
  kernel.blockDim = N;
  kernel.kernelParams = put_arguments;
  OK(cudaGraphAddKernelNode(&first, graph, nullptr, 0, &kernel));
  value = 0; // the node has its own
  OK(cudaGraphAddEmptyNode(&empty, graph, &first, 1));
  void *add_arguments[] = {&data.x, &data.y};
  kernel.func = reinterpret_cast<void *>(add);
  kernel.kernelParams = add_arguments;
  OK(cudaGraphAddKernelNode(&second, graph, &empty, 1, &kernel));
  OK(cudaGraphAddMemcpyNode1D(&down, graph, &second, 1, data.host, data.x,
                              N * sizeof(int), cudaMemcpyDeviceToHost));
  cudaHostNodeParams call = {count, &data.calls};
  OK(cudaGraphAddHostNode(&host, graph, &down, 1, &call));
  OK(cudaGraphAddDependencies(graph, &set, &second, nullptr, 1));
  CHECK(cudaGraphAddDependencies(graph, &set, &second, nullptr, 1) ==
        cudaErrorInvalidValue);
  // A ring is found when the graph is instantiated.
  cudaGraphExec_t exec;
  OK(cudaGraphAddDependencies(graph, &host, &first, nullptr, 1));
  cudaGraphInstantiateParams instantiation = {};
  CHECK(cudaGraphInstantiateWithParams(&exec, graph, &instantiation) ==
            cudaErrorInvalidValue &&
        instantiation.result_out == cudaGraphInstantiateInvalidStructure);
  CHECK(cudaGraphInstantiate(&exec, graph, 0) == cudaErrorInvalidValue && !exec);
  cudaGetLastError();
  OK(cudaGraphRemoveDependencies(graph, &host, &first, nullptr, 1));
  // A clone lives its own life.
  cudaGraph_t clone;
  OK(cudaGraphClone(&clone, graph));
  cudaGraphNode_t found;
  OK(cudaGraphNodeFindInClone(&found, first, clone));
  void *scale_arguments[] = {&data.x, &by};
  kernel.func = reinterpret_cast<void *>(scale);
  kernel.kernelParams = scale_arguments;
  OK(cudaGraphKernelNodeSetParams(found, &kernel));
  cudaKernelNodeParams asked;
  OK(cudaGraphKernelNodeGetParams(found, &asked));
  CHECK(asked.func == reinterpret_cast<void *>(scale) && asked.blockDim.x == N &&
        *static_cast<int *>(asked.kernelParams[1]) == 3);
  cudaMemsetParams asked_fill;
  OK(cudaGraphMemsetNodeGetParams(set, &asked_fill));
  CHECK(asked_fill.dst == data.y && asked_fill.value == 100);
  exec = instantiate(graph);
  cudaGraphExec_t other = instantiate(clone);
  OK(cudaGraphLaunch(exec, nullptr));
  OK(cudaDeviceSynchronize());
  CHECK(data.host[9] == 107 && data.calls == 1);
  OK(cudaGraphLaunch(other, nullptr)); // 107 * 3 + 100
  OK(cudaDeviceSynchronize());
  CHECK(data.host[9] == 421 && data.calls == 2);
  // Changed in the instance.
  fill.value = 1;
  OK(cudaGraphExecMemsetNodeSetParams(exec, set, &fill));
  int ten = 10;
  void *put_ten[] = {&data.x, &ten};
  kernel.func = reinterpret_cast<void *>(put);
  kernel.kernelParams = put_ten;
  OK(cudaGraphExecKernelNodeSetParams(exec, first, &kernel));
  OK(cudaGraphLaunch(exec, nullptr));
  OK(cudaDeviceSynchronize());
  CHECK(data.host[9] == 11);
  CHECK(cudaGraphExecMemsetNodeSetParams(exec, first, &fill) ==
        cudaErrorInvalidValue);
  OK(cudaGraphNodeSetEnabled(exec, second, 0));
  unsigned enabled = 1;
  OK(cudaGraphNodeGetEnabled(exec, second, &enabled));
  CHECK(enabled == 0);
  OK(cudaGraphLaunch(exec, nullptr));
  OK(cudaDeviceSynchronize());
  CHECK(data.host[9] == 10);
  // Updated as a whole, or not at all.
  cudaGraphExecUpdateResultInfo info;
  OK(cudaGraphExecUpdate(exec, clone, &info));
  CHECK(info.result == cudaGraphExecUpdateSuccess);
  OK(cudaGraphNodeSetEnabled(exec, second, 1));
  OK(cudaGraphLaunch(exec, nullptr)); // 10 * 3 + 100
  OK(cudaDeviceSynchronize());
  CHECK(data.host[9] == 130);
  OK(cudaGraphDestroyNode(host));
  CHECK(cudaGraphExecUpdate(exec, graph, &info) == cudaErrorGraphExecUpdateFailure &&
        info.result == cudaGraphExecUpdateErrorTopologyChanged);
  cudaGetLastError();
  // As a picture.
  char path[] = "/tmp/kiln-graph-XXXXXX";
  CHECK(mkstemp(path) >= 0);
  OK(cudaGraphDebugDotPrint(clone, path, cudaGraphDebugDotFlagsVerbose));
  std::ifstream file(path);
  std::string dot((std::istreambuf_iterator<char>(file)), {});
  CHECK(dot.find("digraph") == 0 && dot.find("scale(int*, int)") != dot.npos &&
        dot.find("->") != dot.npos && dot.find("MEMSET") != dot.npos);
  std::remove(path);
  CHECK(cudaGraphDebugDotPrint(clone, "/nowhere/graph.dot", 0) ==
        cudaErrorOperatingSystem);
  OK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphLaunch(exec, nullptr) == cudaErrorInvalidValue);
  OK(cudaGraphExecDestroy(other));
  OK(cudaGraphDestroy(graph));
  OK(cudaGraphDestroy(clone));
  CHECK(cudaGraphDestroy(clone) == cudaErrorInvalidValue);
  CHECK(cudaGraphNodeGetType(first, nullptr) == cudaErrorInvalidValue);
  cudaGetLastError();
}

// Symbols, events, memory of the graph, objects of the program.
static void destroyed(void *data) { *static_cast<bool *>(data) = true; }

static void others() {
  Data data = make();
  cudaStream_t stream;
  OK(cudaStreamCreate(&stream));
  cudaEvent_t event;
  OK(cudaEventCreate(&event));
  cudaGraph_t graph;
  OK(cudaGraphCreate(&graph, 0));
  cudaMemAllocNodeParams memory = {};
  memory.poolProps.allocType = cudaMemAllocationTypePinned;
  memory.poolProps.location = {cudaMemLocationTypeDevice, 0};
  memory.bytesize = N * sizeof(int);
  cudaGraphNode_t allocated, symbol, set, kernel_node, down, recorded, freed;
  OK(cudaGraphAddMemAllocNode(&allocated, graph, nullptr, 0, &memory));
  int seven = 7;
  OK(cudaGraphAddMemcpyNodeToSymbol(&symbol, graph, nullptr, 0, offset, &seven,
                                    sizeof(int), 0, cudaMemcpyHostToDevice));
  cudaMemsetParams fill = {memory.dptr, 0, 1, 4, N, 1};
  fill.dst = memory.dptr;
  fill.value = 1;
  fill.elementSize = 4;
  fill.width = N;
  fill.height = 1;
  OK(cudaGraphAddMemsetNode(&set, graph, &allocated, 1, &fill));
  cudaGraphNode_t both[] = {set, symbol};
  void *arguments[] = {&memory.dptr};
  cudaKernelNodeParams kernel = {reinterpret_cast<void *>(add_offset), 1, N, 0,
                                 arguments, nullptr};
  OK(cudaGraphAddKernelNode(&kernel_node, graph, both, 2, &kernel));
  OK(cudaGraphAddMemcpyNode1D(&down, graph, &kernel_node, 1, data.host,
                              memory.dptr, N * sizeof(int), cudaMemcpyDefault));
  OK(cudaGraphAddEventRecordNode(&recorded, graph, &down, 1, event));
  OK(cudaGraphAddMemFreeNode(&freed, graph, &down, 1, memory.dptr));
  bool is_destroyed = false;
  cudaUserObject_t object;
  OK(cudaUserObjectCreate(&object, &is_destroyed, destroyed, 1,
                          cudaUserObjectNoDestructorSync));
  OK(cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove));
  cudaGraphExec_t exec = instantiate(graph);
  OK(cudaGraphDestroy(graph));
  CHECK(!is_destroyed);
  for (int i = 0; i < 2; ++i) {
    data.host[4] = 0;
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaEventSynchronize(event));
    CHECK(data.host[4] == 8);
  }
  OK(cudaGraphExecDestroy(exec));
  CHECK(is_destroyed);
  // Memory that the launch leaves behind.
  void *left;
  OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  OK(cudaMallocAsync(&left, 64, stream));
  OK(cudaMemsetAsync(left, 3, 64, stream));
  OK(cudaStreamEndCapture(stream, &graph));
  exec = instantiate(graph);
  OK(cudaGraphLaunch(exec, stream));
  CHECK(cudaGraphLaunch(exec, stream) == cudaErrorInvalidValue);
  cudaGetLastError();
  char byte = 0;
  OK(cudaMemcpy(&byte, left, 1, cudaMemcpyDefault));
  CHECK(byte == 3);
  OK(cudaFreeAsync(left, stream));
  OK(cudaGraphLaunch(exec, stream));
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphInstantiate(&exec, graph, cudaGraphInstantiateFlagAutoFreeOnLaunch));
  OK(cudaGraphLaunch(exec, stream));
  OK(cudaGraphLaunch(exec, stream));
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(graph));
  // Work goes on in a graph that has nodes.
  OK(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t root;
  OK(cudaGraphAddEmptyNode(&root, graph, nullptr, 0));
  OK(cudaStreamBeginCaptureToGraph(stream, graph, &root, nullptr, 1,
                                   cudaStreamCaptureModeRelaxed));
  OK(cudaEventRecordWithFlags(event, stream, cudaEventRecordExternal));
  unsigned long long id = 0;
  cudaStreamCaptureStatus status;
  cudaGraph_t same;
  const cudaGraphNode_t *last;
  std::size_t count = 0;
  OK(cudaStreamGetCaptureInfo(stream, &status, &id, &same, &last, nullptr,
                              &count));
  CHECK(id && same == graph && count == 1 && *last != root);
  OK(cudaStreamUpdateCaptureDependencies(stream, &root, nullptr, 1,
                                         cudaStreamSetCaptureDependencies));
  OK(cudaStreamEndCapture(stream, &same));
  CHECK(same == graph && nodes_of(graph).size() == 2);
  OK(cudaGraphDestroy(graph));
}

int main() {
  captured();
  built();
  others();
  std::printf("PASS\n");
}
