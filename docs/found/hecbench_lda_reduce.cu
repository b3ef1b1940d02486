// hecbench_lda_reduce: two sums, one after the other, in the same scratch.
// finds: race error
#include <cuda_runtime.h>

__device__ float sum(float value) {
  __shared__ float scratch[2];
  for (int step = 16; step > 0; step /= 2)
    value += __shfl_down_sync(0xffffffff, value, step);
#ifdef FIXED
  __syncthreads();
#endif
  if (threadIdx.x % 32 == 0)
    scratch[threadIdx.x / 32] = value; // finding
  __syncthreads();
  return scratch[0] + scratch[1];
}

__global__ void losses(float *out) {
  float train = sum(1), validation = sum(2);
  out[threadIdx.x] = train + validation;
}

int main() {
  float *out;
  cudaMalloc(&out, 64 * sizeof(float));
  losses<<<1, 64>>>(out);
  return cudaDeviceSynchronize();
}
