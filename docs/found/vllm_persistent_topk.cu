// vllm_persistent_topk: one block clears the counter that the others already
// count with.
// finds: race error
#include <cuda_runtime.h>

__global__ void topk(int *arrived, int *out) {
#ifndef FIXED
  if (blockIdx.x == 0 && threadIdx.x == 0)
    *arrived = 0;
  __syncthreads();
#endif
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(arrived, 1); // finding
    int seen = 0;
    while (seen < gridDim.x)
      asm volatile("ld.acquire.gpu.global.s32 %0, [%1];"
                   : "=r"(seen)
                   : "l"(arrived)
                   : "memory");
  }
  __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = 1;
}

int main() {
  int *arrived, *out;
  cudaMalloc(&arrived, sizeof(int));
  cudaMemset(arrived, 0, sizeof(int));
  cudaMalloc(&out, 2 * 32 * sizeof(int));
  topk<<<2, 32>>>(arrived, out);
  return cudaDeviceSynchronize();
}
