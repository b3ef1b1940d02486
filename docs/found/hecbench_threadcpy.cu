// hecbench_threadcpy: what remains for a thread behind the end is a number
// without a sign, and so the largest of all.
// finds: out-of-bounds error
#include <cstddef>
#include <cuda_runtime.h>

__global__ void copy(const int *in, int *out, std::size_t n) {
  std::size_t index = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef FIXED
  if (index >= n)
    return;
#endif
  std::size_t remaining = n - index;
  if (remaining < 1)
    return;
  out[index] = in[index]; // finding
}

int main() {
  const std::size_t n = 66;
  int *in, *out;
  cudaMalloc(&in, n * sizeof(int));
  cudaMalloc(&out, n * sizeof(int));
  cudaMemset(in, 1, n * sizeof(int));
  copy<<<2, 64>>>(in, out, n);
  return cudaDeviceSynchronize() != cudaSuccess;
}
