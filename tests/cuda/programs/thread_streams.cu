// thread_streams: the default stream of each thread, and the legacy one.
// status: 0
// nvcc: --default-stream per-thread
#include "check.h"

#include <thread>

__global__ void wait_for(volatile int *flag, int *x) {
  while (*flag == 0)
    ;
  *x = 7;
}
__global__ void put(int *x, int value) { *x = value; }

int main() {
  volatile int *flag;
  int *x;
  OK(cudaMallocManaged(const_cast<int **>(&flag), sizeof(int)));
  OK(cudaMallocManaged(&x, 4 * sizeof(int)));
  *flag = 0;
  x[0] = x[1] = x[2] = 0;
  wait_for<<<1, 1>>>(flag, x);
  CHECK(cudaStreamQuery(nullptr) == cudaErrorNotReady);
  CHECK(cudaStreamQuery(cudaStreamPerThread) == cudaErrorNotReady);
  // Another thread's is another stream.
  std::thread([&] {
    put<<<1, 1>>>(x + 1, 5);
    OK(cudaStreamSynchronize(nullptr));
    CHECK(x[1] == 5);
  }).join();
  // The legacy stream waits for both.
  put<<<1, 1, 0, cudaStreamLegacy>>>(x + 2, 6);
  CHECK(cudaStreamQuery(cudaStreamLegacy) == cudaErrorNotReady && x[2] == 0);
  *flag = 1;
  OK(cudaStreamSynchronize(cudaStreamLegacy));
  CHECK(x[0] == 7 && x[2] == 6);
  // A thread's stream can be captured.
  cudaGraph_t graph;
  OK(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal));
  put<<<1, 1>>>(x, 8);
  OK(cudaStreamEndCapture(cudaStreamPerThread, &graph));
  CHECK(x[0] == 7);
  cudaGraphExec_t exec;
  OK(cudaGraphInstantiate(&exec, graph, 0));
  OK(cudaGraphLaunch(exec, nullptr));
  OK(cudaStreamSynchronize(nullptr));
  CHECK(x[0] == 8);
  int least, greatest, priority;
  OK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  cudaStream_t urgent;
  OK(cudaStreamCreateWithPriority(&urgent, cudaStreamNonBlocking, -100));
  OK(cudaStreamGetPriority(urgent, &priority));
  CHECK(least == 0 && greatest < 0 && priority == greatest);
  OK(cudaStreamDestroy(urgent));
  CHECK(cudaStreamDestroy(urgent) == cudaErrorInvalidResourceHandle);
  CHECK(cudaStreamSynchronize(urgent) == cudaErrorInvalidResourceHandle);
  std::printf("PASS\n");
}
