// llmc_layernorm: the last block adds up what the others have stored, and no
// fence stands beside the counter.
// finds: race error
#include <cuda_runtime.h>

__global__ void backward(float *partial, unsigned *counter, float *total) {
  __shared__ unsigned ticket;
  partial[blockIdx.x * 64 + threadIdx.x] = 1;
#ifdef FIXED
  __threadfence();
#endif
  __syncthreads();
  if (threadIdx.x == 0)
    ticket = atomicInc(counter, gridDim.x);
  __syncthreads();
  if (ticket != gridDim.x - 1)
    return;
#ifdef FIXED
  __threadfence();
#endif
  float sum = 0;
  for (int block = 0; block < gridDim.x; ++block)
    sum += partial[block * 64 + threadIdx.x]; // finding
  total[threadIdx.x] = sum;
}

int main() {
  float *partial, *total;
  unsigned *counter;
  cudaMalloc(&partial, 4 * 64 * sizeof(float));
  cudaMalloc(&total, 64 * sizeof(float));
  cudaMalloc(&counter, sizeof(unsigned));
  cudaMemset(counter, 0, sizeof(unsigned));
  backward<<<4, 64>>>(partial, counter, total);
  return cudaDeviceSynchronize();
}
