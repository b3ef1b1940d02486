// thunderkittens_exit: two blocks meet before they leave, and a warp that takes
// no part in that may still arrive at the other block's mbarrier.
// finds: cta-exit-order error
#include <cstdint>
#include <cuda_runtime.h>

__device__ void arrive_at(uint32_t bar, uint32_t rank) {
  asm volatile("{ .reg .b32 other;\n" // finding
               "mapa.shared::cluster.u32 other, %0, %1;\n"
               "mbarrier.arrive.release.cluster.shared::cluster.b64 "
               "_, [other]; }" ::"r"(bar),
               "r"(rank)
               : "memory");
}

__global__ void __cluster_dims__(2, 1, 1) tiles() {
  __shared__ uint64_t bars[2];
  uint32_t finished = __cvta_generic_to_shared(bars), scheduled = finished + 8;
  uint32_t rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  if (threadIdx.x == 0)
    asm volatile("mbarrier.init.shared.b64 [%0], 1;\n"
                 "mbarrier.init.shared.b64 [%1], 2;\n"
                 "fence.mbarrier_init.release.cluster;" ::"r"(finished),
                 "r"(scheduled)
                 : "memory");
  asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");
  if (threadIdx.x == 32)
    arrive_at(scheduled, 0);
#ifdef FIXED
  __syncthreads();
#endif
  if (threadIdx.x == 0) {
    arrive_at(finished, 1 - rank);
    for (int done = 0; !done;)
      asm volatile("{ .reg .pred p;\n"
                   "mbarrier.try_wait.parity.acquire.cluster.shared.b64 p, "
                   "[%1], 0;\n"
                   "selp.u32 %0, 1, 0, p; }"
                   : "=r"(done)
                   : "r"(finished)
                   : "memory");
  }
}

int main() {
  tiles<<<2, 64>>>();
  return cudaDeviceSynchronize() == cudaSuccess ? 0 : 1;
}
