// hecbench_quantaqlm: a row of the result for each warp, and memory for each
// 32nd row.
// finds: out-of-bounds error
#include <cuda_fp16.h>

__global__ void rows(__half *c, int count) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  float sum = threadIdx.x % 32;
  for (int step = 16; step > 0; step /= 2)
    sum += __shfl_down_sync(0xffffffff, sum, step);
  if (row < count && threadIdx.x % 32 == 0)
    c[row] = __float2half(sum); // finding
}

int main() {
  const int count = 256;
#ifdef FIXED
  const int elements = count;
#else
  const int elements = count / 32;
#endif
  __half *c;
  cudaMalloc(&c, elements * sizeof(__half));
  rows<<<count / 4, 128>>>(c, count);
  return cudaDeviceSynchronize() == cudaSuccess ? 0 : 1;
}
