// hecbench_qtclustering: a mark that one thread sets while another clears.
// finds: race error
#include <cuda_runtime.h>

__global__ void candidates(char *mask, int points, int seed) {
  for (int i = threadIdx.x; i < points; i += blockDim.x)
    mask[i] = 0;
#ifdef FIXED
  __syncthreads();
#endif
  if (threadIdx.x == 0)
    mask[seed] = 1; // finding
  __syncthreads();
}

int main() {
  char *mask;
  cudaMalloc(&mask, 128);
  candidates<<<1, 64>>>(mask, 128, 100);
  return cudaDeviceSynchronize();
}
