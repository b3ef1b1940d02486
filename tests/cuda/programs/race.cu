// race: a missing __syncthreads is found with its line, and the program goes on.
// status: 2
// stderr: launch 1 of reverse\(int\*\), grid 1x1x1, block 64x1x1
// stderr: error race at .*race.cu:14: this reads shared address
// stderr: 2 launches, 2 checked: 2 errors, 0 warnings
#include "check.h"

__global__ void reverse(int *x) {
  __shared__ int tile[64];
  tile[threadIdx.x] = x[threadIdx.x];
#ifdef REPAIRED
  __syncthreads();
#endif
  x[threadIdx.x] = tile[63 - threadIdx.x];
}
__global__ void set(int *x) { x[threadIdx.x] = threadIdx.x; }

int main() {
  int *x, back[64];
  OK(cudaMalloc(&x, sizeof(back)));
  OK(cudaMemset(x, 0, sizeof(back)));
  reverse<<<1, 64>>>(x);
  set<<<1, 64>>>(x);
  OK(cudaDeviceSynchronize());
  OK(cudaMemcpy(back, x, sizeof(back), cudaMemcpyDeviceToHost));
  CHECK(back[63] == 63);
  std::printf("PASS\n");
  return 0;
}
