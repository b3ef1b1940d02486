// cutlass_93_mailbox: a block clears its mailbox behind the cluster barrier,
// when others may already have stored into it.
// finds: race error
#include <cstdint>
#include <cuda_runtime.h>

#define CLUSTER_BARRIER                                                        \
  asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory")

__global__ void __cluster_dims__(2, 1, 1) reduce(int *out) {
  __shared__ alignas(16) int mailbox[2];
  __shared__ uint64_t full;
  uint32_t bar = __cvta_generic_to_shared(&full), rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  uint32_t slot = __cvta_generic_to_shared(&mailbox[rank]);
  if (threadIdx.x == 0)
    asm volatile("mbarrier.init.shared.b64 [%0], 1;\n"
                 "fence.mbarrier_init.release.cluster;\n"
                 "mbarrier.arrive.expect_tx.shared.b64 _, [%0], 8;" ::"r"(bar)
                 : "memory");
#ifdef FIXED
  if (threadIdx.x < 2)
    mailbox[threadIdx.x] = 0;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
  CLUSTER_BARRIER;
#ifndef FIXED
  if (threadIdx.x < 2)
    mailbox[threadIdx.x] = 0;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
#endif
  if (threadIdx.x < 2)
    asm volatile("{ .reg .b32 to, at;\n" // finding
                 "mapa.shared::cluster.u32 to, %0, %3;\n"
                 "mapa.shared::cluster.u32 at, %1, %3;\n"
                 "st.async.shared::cluster.mbarrier::complete_tx::bytes.s32 "
                 "[to], %2, [at]; }" ::"r"(slot),
                 "r"(bar), "r"(rank + 1), "r"(threadIdx.x)
                 : "memory");
  for (int done = 0; !done;)
    asm volatile("{ .reg .pred p;\n"
                 "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 "
                 "p, [%1], 0;\n"
                 "selp.u32 %0, 1, 0, p; }"
                 : "=r"(done)
                 : "r"(bar)
                 : "memory");
  out[blockIdx.x * 32 + threadIdx.x] = mailbox[0] + mailbox[1];
  CLUSTER_BARRIER;
}

int main() {
  int *out;
  cudaMalloc(&out, 2 * 32 * sizeof(int));
  reduce<<<2, 32>>>(out);
  return cudaDeviceSynchronize();
}
