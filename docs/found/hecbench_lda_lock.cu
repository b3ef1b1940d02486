// hecbench_lda_lock: a lock that is taken and released without a fence.
// finds: race error
#include <cuda_runtime.h>

__device__ int lock;
__device__ float sums[64];

__global__ void add() {
  if (threadIdx.x == 0) {
    while (atomicCAS(&lock, 0, 1) != 0) {
    }
#ifdef FIXED
    __threadfence();
#endif
  }
  __syncthreads();
  sums[threadIdx.x] += 1; // finding
  __syncthreads();
#ifdef FIXED
  if (threadIdx.x == 0) {
    __threadfence();
    atomicExch(&lock, 0);
  }
#else
  if (threadIdx.x == 0)
    lock = 0;
#endif
}

int main() {
  add<<<4, 64>>>();
  return cudaDeviceSynchronize();
}
