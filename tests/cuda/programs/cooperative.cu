// cooperative: CTAs that wait for each other, all of which must fit.
// status: 0
#include "check.h"

#include <cooperative_groups.h>

namespace cg = cooperative_groups;

__global__ void sum(const int *x, int *parts, int *out) {
  __shared__ int part;
  if (threadIdx.x == 0)
    part = 0;
  __syncthreads();
  atomicAdd(&part, x[blockIdx.x * blockDim.x + threadIdx.x]);
  __syncthreads();
  if (threadIdx.x == 0)
    parts[blockIdx.x] = part;
  cg::this_grid().sync();
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    int all = 0;
    for (unsigned i = 0; i < gridDim.x; ++i)
      all += parts[i];
    *out = all;
  }
}

int main() {
  const int blocks = 8, threads = 64;
  int *x, *parts, *out;
  OK(cudaMallocManaged(&x, blocks * threads * sizeof(int)));
  OK(cudaMallocManaged(&parts, blocks * sizeof(int)));
  OK(cudaMallocManaged(&out, sizeof(int)));
  int wanted = 0;
  for (int i = 0; i < blocks * threads; ++i)
    wanted += x[i] = i % 7;
  void *parameters[] = {&x, &parts, &out};
  OK(cudaLaunchCooperativeKernel(sum, blocks, threads, parameters, 0, nullptr));
  OK(cudaDeviceSynchronize());
  CHECK(*out == wanted);
  CHECK(cudaLaunchCooperativeKernel(sum, 100000, threads, parameters, 0,
                                    nullptr) ==
        cudaErrorCooperativeLaunchTooLarge);
  std::printf("PASS\n");
  return 0;
}
