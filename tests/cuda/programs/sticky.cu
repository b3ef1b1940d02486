// sticky: an error that ends a launch stays, as on a GPU.
// status: 2
// stderr: error out-of-bounds at .*sticky.cu:7
// stderr: 1 ended by an error
#include "check.h"

__global__ void write(int *x) { x[100] = 1; }

int main() {
  int *x;
  OK(cudaMalloc(&x, 64));
  // The launch itself is begun; who waits for it is told.
  void *arguments[] = {&x};
  CHECK(cudaLaunchKernel(write, 1, 1, arguments, 0, nullptr) == cudaSuccess);
  CHECK(cudaDeviceSynchronize() == cudaErrorLaunchFailure);
  CHECK(cudaGetLastError() == cudaErrorLaunchFailure);
  CHECK(cudaGetLastError() == cudaErrorLaunchFailure);
  CHECK(cudaMalloc(&x, 64) == cudaErrorLaunchFailure);
  std::printf("PASS\n");
  return 0;
}
