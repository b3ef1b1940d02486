// fastcu_cluster_exit: a block leaves while the other of its cluster may still
// arrive at its mbarrier.
// finds: cta-exit-order error
#include <cstdint>
#include <cuda_runtime.h>

__global__ void __cluster_dims__(2, 1, 1) hand_back() {
  __shared__ uint64_t empty;
  uint32_t bar = __cvta_generic_to_shared(&empty);
  if (threadIdx.x == 0)
    asm volatile("mbarrier.init.shared.b64 [%0], 1;\n"
                 "fence.mbarrier_init.release.cluster;" ::"r"(bar)
                 : "memory");
  asm volatile("barrier.cluster.arrive;\n"
               "barrier.cluster.wait;" ::
                   : "memory");
  if (threadIdx.x == 0)
    asm volatile("{ .reg .b32 other, rank;\n" // finding
                 "mov.u32 rank, %%cluster_ctarank;\n"
                 "xor.b32 rank, rank, 1;\n"
                 "mapa.shared::cluster.u32 other, %0, rank;\n"
                 "mbarrier.arrive.release.cluster.shared::cluster.b64 "
                 "_, [other]; }" ::"r"(bar)
                 : "memory");
#ifdef FIXED
  asm volatile("barrier.cluster.arrive;\n"
               "barrier.cluster.wait;" ::
                   : "memory");
#endif
}

int main() {
  hand_back<<<2, 32>>>();
  return cudaDeviceSynchronize() == cudaSuccess ? 0 : 1;
}
