// hecbench_sosfil: a systolic array whose stages read and write one slot each
// between the same two barriers.
// finds: race error
#include <cuda_runtime.h>

__global__ void filter(float *x, int samples) {
  __shared__ float out[64];
  int tx = threadIdx.x;
  out[tx] = 0;
  __syncthreads();
  for (int n = 0; n < samples; ++n) {
    float in = tx == 0 ? x[n] : out[tx - 1];
#ifdef FIXED
    __syncthreads();
#endif
    out[tx] = in / 2 + 1; // finding
    __syncthreads();
  }
  x[tx] = out[tx];
}

int main() {
  float *x;
  cudaMalloc(&x, 64 * sizeof(float));
  cudaMemset(x, 0, 64 * sizeof(float));
  filter<<<1, 64>>>(x, 4);
  return cudaDeviceSynchronize();
}
