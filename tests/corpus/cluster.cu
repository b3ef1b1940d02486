// Clusters: a multicast load, and shared memory of the neighbour read and
// added to (DSMEM).
#include <cooperative_groups.h>
#include <cuda.h>
#include <cstdint>

namespace cg = cooperative_groups;

/// Bins are spread over the CTAs of a cluster; each counts its part of the
/// input into all of them.
extern "C" __global__ void __cluster_dims__(2, 1, 1)
    cluster_histogram(const int *in, int *out, int count) {
  __shared__ int bins[64];
  cg::cluster_group cluster = cg::this_cluster();
  for (int i = threadIdx.x; i < 64; i += blockDim.x)
    bins[i] = 0;
  cluster.sync();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
       i += gridDim.x * blockDim.x) {
    int bin = in[i];
    int *remote = cluster.map_shared_rank(bins, bin / 64);
    atomicAdd(remote + bin % 64, 1);
  }
  cluster.sync();
  for (int i = threadIdx.x; i < 64; i += blockDim.x)
    atomicAdd(out + cluster.block_rank() * 64 + i, bins[i]);
}

/// One CTA loads 32 x 32 floats for both; each writes them, transposed for the
/// second.
extern "C" __global__ void __cluster_dims__(2, 1, 1)
    multicast(const __grid_constant__ CUtensorMap map, float *out) {
  __shared__ __align__(128) float tile[32][32];
  __shared__ uint64_t barrier;
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  auto address = (uint32_t)__cvta_generic_to_shared(&barrier);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address));
    asm volatile("fence.mbarrier_init.release.cluster;");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 4096;" ::
                     "r"(address)
                 : "memory");
  }
  asm volatile("barrier.cluster.arrive.release.aligned;\n"
               "barrier.cluster.wait.acquire.aligned;" ::
                   : "memory");
  if (threadIdx.x == 0 && rank == 0)
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::"
        "bytes.multicast::cluster [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(
            (uint32_t)__cvta_generic_to_shared(tile)),
        "l"(&map), "r"(address), "r"(0), "r"((int)blockIdx.x / 2 * 32),
        "h"((uint16_t)3)
        : "memory");
  uint32_t is_done = 0;
  while (!is_done)
    asm volatile("{ .reg .pred p;\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;\n"
                 "selp.u32 %0, 1, 0, p; }"
                 : "=r"(is_done)
                 : "r"(address)
                 : "memory");
  float *place = out + blockIdx.x * 1024;
  for (int i = threadIdx.x; i < 1024; i += blockDim.x)
    place[i] = rank == 0 ? tile[i / 32][i % 32] : tile[i % 32][i / 32];
  asm volatile("barrier.cluster.arrive.aligned;\n"
               "barrier.cluster.wait.aligned;" ::
                   : "memory");
}
