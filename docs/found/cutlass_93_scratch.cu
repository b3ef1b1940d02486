// cutlass_93_scratch: the maxima of the next tile are written over those that
// another warp has still to read.
// finds: race error
#include <cuda_runtime.h>

__device__ int maximum(int value, int *scratch) {
  value = __reduce_max_sync(0xffffffff, value);
  if (threadIdx.x % 32 == 0)
    scratch[threadIdx.x / 32] = value; // finding
  __syncthreads();
  int best = max(scratch[0], scratch[1]);
#ifdef FIXED
  __syncthreads();
#endif
  return best;
}

__global__ void attention(const int *scores, int tiles, int *out) {
  __shared__ int scratch[2];
  int best = 0;
  for (int tile = 0; tile < tiles; ++tile)
    best = max(best, maximum(scores[tile * 64 + threadIdx.x], scratch));
  out[threadIdx.x] = best;
}

int main() {
  int *scores, *out;
  cudaMalloc(&scores, 2 * 64 * sizeof(int));
  cudaMemset(scores, 0, 2 * 64 * sizeof(int));
  cudaMalloc(&out, 64 * sizeof(int));
  attention<<<1, 64>>>(scores, 2, out);
  return cudaDeviceSynchronize();
}
