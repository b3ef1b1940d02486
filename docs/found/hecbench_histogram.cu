// hecbench_histogram: a guard that lets one thread too many through.
// finds: out-of-bounds error
#include <cuda_runtime.h>

const int bins = 96, stride = 128;

__global__ void total(const unsigned *parts, int count, unsigned *out) {
  int bin = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef FIXED
  if (bin >= bins)
#else
  if (bin > bins)
#endif
    return;
  unsigned sum = 0;
  for (int part = 0; part < count; ++part)
    sum += parts[bin + stride * part];
  out[bin] = sum; // finding
}

int main() {
  unsigned *parts, *out;
  cudaMalloc(&parts, 2 * stride * sizeof(unsigned));
  cudaMemset(parts, 0, 2 * stride * sizeof(unsigned));
  cudaMalloc(&out, bins * sizeof(unsigned));
  total<<<1, 128>>>(parts, 2, out);
  return cudaDeviceSynchronize() == cudaSuccess ? 0 : 1;
}
