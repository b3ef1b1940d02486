// cuda_samples_pipeline: one tile more is on its way than there are slots, and
// lands in the slot that is being read.
// finds: copy-not-awaited error
#include <cuda/pipeline>
#include <cuda_runtime.h>

const int stages = 4;

__global__ void sums(const int *in, int tiles, int *out) {
  __shared__ int slots[stages][64];
  auto pipe = cuda::make_pipeline();
  int sum = 0;
  for (int tile = 0, ahead = 0; tile < tiles; ++tile) {
#ifdef FIXED
    for (; ahead < tile + stages; ++ahead) {
#else
    for (; ahead <= tile + stages; ++ahead) {
#endif
      pipe.producer_acquire();
      if (ahead < tiles)
        cuda::memcpy_async(&slots[ahead % stages][threadIdx.x],
                           &in[ahead * 64 + threadIdx.x], sizeof(int), pipe);
      pipe.producer_commit();
    }
    pipe.consumer_wait();
    __syncthreads();
    sum += slots[tile % stages][63 - threadIdx.x]; // finding
    pipe.consumer_release();
#ifdef FIXED
    __syncthreads();
#endif
  }
  out[threadIdx.x] = sum;
}

int main() {
  int *in, *out;
  cudaMalloc(&in, 8 * 64 * sizeof(int));
  cudaMemset(in, 1, 8 * 64 * sizeof(int));
  cudaMalloc(&out, 64 * sizeof(int));
  sums<<<1, 64>>>(in, 8, out);
  return cudaDeviceSynchronize();
}
