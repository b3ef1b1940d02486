// fastcu_source_reuse: one thread waits for the store of a tile, and the others
// write the next tile over it.
// finds: copy-source-reuse error
#include <cstdint>
#include <cuda_runtime.h>

__global__ void store(int *out, int tiles) {
  __shared__ alignas(128) int tile[64];
  uint32_t from = __cvta_generic_to_shared(tile);
  for (int i = 0; i < tiles; ++i) {
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
#ifdef FIXED
    __syncthreads();
#endif
    tile[threadIdx.x] = i; // finding
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 32)
      asm volatile("cp.async.bulk.global.shared::cta.bulk_group "
                   "[%0], [%1], 256;\n"
                   "cp.async.bulk.commit_group;" ::"l"(out + i * 64),
                   "r"(from)
                   : "memory");
    __syncthreads(); // as the main loop's waits: the copy has begun
  }
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

int main() {
  int *out;
  cudaMalloc(&out, 2 * 256);
  store<<<1, 64>>>(out, 2);
  return cudaDeviceSynchronize();
}
