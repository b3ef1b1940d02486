// fastcu_proxy_fence: a tile that threads have written and the bulk engine
// stores, with a barrier between and no proxy fence.
// finds: proxy-fence error
#include <cstdint>
#include <cuda_runtime.h>

__global__ void store(int *out) {
  __shared__ alignas(128) int tile[64];
  uint32_t from = __cvta_generic_to_shared(tile);
  tile[threadIdx.x] = threadIdx.x;
#ifdef FIXED
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group " // finding
                 "[%0], [%1], 256;" ::"l"(out),
                 "r"(from)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;\n"
                 "cp.async.bulk.wait_group 0;" ::
                     : "memory");
  }
}

int main() {
  int *out;
  cudaMalloc(&out, 256);
  store<<<1, 64>>>(out);
  return cudaDeviceSynchronize();
}
