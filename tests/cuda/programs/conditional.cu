// conditional: graphs that decide by themselves what comes next.
// status: 0
#include "check.h"

__global__ void add(int *x, int value) { *x += value; }
__global__ void count_down(cudaGraphConditionalHandle more, int *n) {
  cudaGraphSetConditional(more, --*n > 0);
}
__global__ void choose(cudaGraphConditionalHandle which, unsigned value) {
  cudaGraphSetConditional(which, value);
}

static cudaGraphNode_t add_kernel(cudaGraph_t graph, cudaGraphNode_t *behind,
                                  const void *function, void **arguments) {
  cudaGraphNode_t node;
  cudaKernelNodeParams kernel = {};
  kernel.func = const_cast<void *>(function);
  kernel.gridDim = kernel.blockDim = 1;
  kernel.kernelParams = arguments;
  OK(cudaGraphAddKernelNode(&node, graph, behind, behind ? 1 : 0, &kernel));
  return node;
}

/// The graphs of a conditional node.
static cudaGraph_t *add_condition(cudaGraph_t graph, cudaGraphNode_t *behind,
                                  cudaGraphConditionalHandle handle,
                                  cudaGraphConditionalNodeType type,
                                  unsigned size) {
  cudaGraphNodeParams parameters = {};
  parameters.type = cudaGraphNodeTypeConditional;
  parameters.conditional.handle = handle;
  parameters.conditional.type = type;
  parameters.conditional.size = size;
  cudaGraphNode_t node;
  OK(cudaGraphAddNode(&node, graph, behind, nullptr, behind ? 1 : 0,
                      &parameters));
  return parameters.conditional.phGraph_out;
}

static void launch(cudaGraph_t graph) {
  cudaGraphExec_t exec;
  OK(cudaGraphInstantiate(&exec, graph, 0));
  OK(cudaGraphLaunch(exec, nullptr));
  OK(cudaDeviceSynchronize());
  OK(cudaGraphExecDestroy(exec));
}

int main() {
  int *x; // a sum, and how often it is to grow
  OK(cudaMallocManaged(&x, 2 * sizeof(int)));
  int *n = x + 1, seven = 7, hundred = 100;
  void *add_seven[] = {&x, &seven}, *add_hundred[] = {&x, &hundred};
  cudaGraph_t graph;
  cudaGraphConditionalHandle handle;

  // While: as long as the kernel says so.
  OK(cudaGraphCreate(&graph, 0));
  OK(cudaGraphConditionalHandleCreate(&handle, graph, 1,
                                      cudaGraphCondAssignDefault));
  CHECK(cudaGraphClone(&graph, graph) == cudaErrorInvalidValue);
  cudaGetLastError();
  cudaGraph_t body =
      add_condition(graph, nullptr, handle, cudaGraphCondTypeWhile, 1)[0];
  cudaGraphNode_t first = add_kernel(body, nullptr, (void *)add, add_seven);
  void *down[] = {&handle, &n};
  add_kernel(body, &first, (void *)count_down, down);
  for (int times : {1, 4}) {
    x[0] = 0;
    *n = times;
    launch(graph);
    CHECK(x[0] == 7 * times && *n == 0);
  }
  OK(cudaGraphDestroy(graph));

  // If, with an else; and one of several.
  for (unsigned value : {0u, 1u, 2u}) {
    OK(cudaGraphCreate(&graph, 0));
    OK(cudaGraphConditionalHandleCreate(&handle, graph, 0, 0));
    void *arguments[] = {&handle, &value};
    first = add_kernel(graph, nullptr, (void *)choose, arguments);
    cudaGraph_t *bodies =
        add_condition(graph, &first, handle, cudaGraphCondTypeIf, 2);
    cudaGraph_t then = bodies[0], otherwise = bodies[1];
    add_kernel(then, nullptr, (void *)add, add_seven);
    add_kernel(otherwise, nullptr, (void *)add, add_hundred);
    bodies = add_condition(graph, &first, handle, cudaGraphCondTypeSwitch, 2);
    cudaGraph_t second = bodies[1];
    add_kernel(second, nullptr, (void *)add, add_hundred);
    x[0] = 0;
    launch(graph);
    CHECK(x[0] == (value == 0 ? 100 : value == 1 ? 107 : 7));
    OK(cudaGraphDestroy(graph));
  }
  std::printf("PASS\n");
}
