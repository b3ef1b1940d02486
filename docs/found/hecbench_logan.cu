// hecbench_logan: the first step of a reduction reads a second half that a
// block of one warp does not have.
// finds: out-of-bounds error
#include <cuda_runtime.h>

__global__ void maximum(const short *in, short *out) {
  extern __shared__ short values[];
  volatile short *v = values;
  int i = threadIdx.x;
  v[i] = in[i];
  __syncthreads();
#ifdef FIXED
  if (blockDim.x > 32)
#endif
    v[i] = v[i] > v[i + 32] ? v[i] : v[i + 32]; // finding
  for (int step = 16; step > 0; step /= 2) {
    short other = v[i ^ step];
    __syncwarp();
    v[i] = v[i] > other ? v[i] : other;
    __syncwarp();
  }
  out[i] = v[0];
}

int main() {
  short *in, *out;
  cudaMalloc(&in, 32 * sizeof(short));
  cudaMemset(in, 0, 32 * sizeof(short));
  cudaMalloc(&out, 32 * sizeof(short));
  maximum<<<1, 32, 32 * sizeof(short)>>>(in, out);
  return cudaDeviceSynchronize() == cudaSuccess ? 0 : 1;
}
