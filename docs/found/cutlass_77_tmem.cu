// cutlass_77_tmem: a warp frees tensor memory at an address that another warp
// may not have written yet.
// finds: race error
// arch: 100a
#include <cstdint>
#include <cuda_runtime.h>

__global__ void attention() {
  __shared__ uint32_t base;
  int warp = threadIdx.x / 32;
  if (warp == 0)
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 "
                 "[%0], 512;" ::"r"((uint32_t)__cvta_generic_to_shared(&base))
                 : "memory");
#ifdef FIXED
  __syncthreads();
  if (warp == 0)
#else
  if (warp == 1)
#endif
    asm volatile(
        "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 512;" // finding
        ::"r"(base)
        : "memory");
}

int main() {
  attention<<<1, 64>>>();
  return cudaDeviceSynchronize() == cudaSuccess ? 0 : 1;
}
