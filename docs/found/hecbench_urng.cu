// hecbench_urng: private tables of all threads in one array, with the number
// of entries for a stride where the number of threads belongs.
// finds: race error
#include <cuda_runtime.h>

const int entries = 16, threads = 64;
#ifdef FIXED
const int stride = threads;
#else
const int stride = entries;
#endif

__global__ void noise(int *out) {
  __shared__ int table[entries * threads];
  int seed = 1 + threadIdx.x;
  for (int j = entries - 1; j >= 0; --j) {
    seed = seed * 16807 % 65537;
    table[stride * j + threadIdx.x] = seed; // finding
  }
  out[threadIdx.x] = table[stride * (seed & (entries - 1)) + threadIdx.x];
}

int main() {
  int *out;
  cudaMalloc(&out, threads * sizeof(int));
  noise<<<1, threads>>>(out);
  return cudaDeviceSynchronize();
}
