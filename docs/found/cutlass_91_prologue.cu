// cutlass_91_prologue: the first buffer is filled with as many tiles as it has
// stages, whether the row has so many or not.
// finds: out-of-bounds error
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

const int stages = 4, tile = 32;

__global__ void dot(const int *a, int tiles, int *out) {
  __shared__ int slots[stages][tile];
  int sum = 0;
  for (int stage = 0; stage < stages; ++stage)
#ifdef FIXED
    if (stage < tiles)
#endif
      __pipeline_memcpy_async(&slots[stage][threadIdx.x], // finding
                              &a[stage * tile + threadIdx.x], sizeof(int));
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
#ifdef FIXED
  for (int stage = 0; stage < tiles; ++stage)
#else
  for (int stage = 0; stage < stages; ++stage)
#endif
    sum += slots[stage][31 - threadIdx.x];
  out[threadIdx.x] = sum;
}

int main() {
  const int tiles = 2;
  int *a, *out;
  cudaMalloc(&a, tiles * tile * sizeof(int));
  cudaMemset(a, 1, tiles * tile * sizeof(int));
  cudaMalloc(&out, tile * sizeof(int));
  dot<<<1, tile>>>(a, tiles, out);
  return cudaDeviceSynchronize() != cudaSuccess;
}
