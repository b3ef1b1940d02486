// flashinfer_topk: thread 0 tells the other blocks of a histogram that its
// block has still to finish.
// finds: race error
#include <cuda_runtime.h>

const int bins = 64;

__device__ void meet(int *arrived, int blocks) {
  if (threadIdx.x == 0) {
    asm volatile("fence.acq_rel.gpu;\n"
                 "red.relaxed.gpu.global.add.s32 [%0], 1;" ::"l"(arrived)
                 : "memory");
    int seen = 0;
    while (seen < blocks)
      asm volatile("ld.acquire.gpu.global.s32 %0, [%1];"
                   : "=r"(seen)
                   : "l"(arrived)
                   : "memory");
  }
  __syncthreads();
}

__global__ void histogram(int *counts, int *arrived, int *out) {
  atomicAdd(&counts[threadIdx.x], 1);
#ifdef FIXED
  __syncthreads();
#endif
  meet(arrived, gridDim.x);
  out[blockIdx.x * bins + threadIdx.x] = counts[threadIdx.x]; // finding
}

int main() {
  int *histogram_memory, *arrived, *out;
  cudaMalloc(&histogram_memory, bins * sizeof(int));
  cudaMemset(histogram_memory, 0, bins * sizeof(int));
  cudaMalloc(&arrived, sizeof(int));
  cudaMemset(arrived, 0, sizeof(int));
  cudaMalloc(&out, 2 * bins * sizeof(int));
  histogram<<<2, bins>>>(histogram_memory, arrived, out);
  return cudaDeviceSynchronize();
}
