// hecbench_logan_reduce: the next chunk is written over a result that others
// have still to read.
// finds: race error
#include <cuda_runtime.h>

__global__ void maximum(const int *in, int chunks, int *out) {
  __shared__ int values[64];
  int i = threadIdx.x, best = 0;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    values[i] = in[chunk * 64 + i];
    __syncthreads();
    for (int half = 32; half > 0; half /= 2) {
      if (i < half && values[i + half] > values[i])
        values[i] = values[i + half];
      __syncthreads();
    }
    best = values[0] > best ? values[0] : best; // finding
#ifdef FIXED
    __syncthreads();
#endif
  }
  out[i] = best;
}

int main() {
  int *in, *out;
  cudaMalloc(&in, 128 * sizeof(int));
  cudaMemset(in, 0, 128 * sizeof(int));
  cudaMalloc(&out, 64 * sizeof(int));
  maximum<<<1, 64>>>(in, 2, out);
  return cudaDeviceSynchronize();
}
