// MutationRedundant: defects that change nothing in the launches of
// MutationSubjects.h, and why.
#pragma once

#include "broken/CorpusRedundant.h"
#include "broken/Mutants.h"

namespace kiln {

inline Redundant allRedundant() {
  Redundant redundant = {
      {"cluster_multicast: barrier.cluster.wait.aligned: deleted",
       "nobody touches another CTA's memory after it"},
      {"hopper_gemm_hopper_gemm: wgmma.fence.sync.aligned (2): deleted",
       "no register was touched since the product before"},
      {"hopper_gemm_hopper_gemm: wgmma.fence.sync.aligned (3): deleted",
       "no register was touched since the product before"},
      {"hopper_gemm_hopper_gemm: mbarrier.arrive.shared::cta.b64 _, [%r121]: "
       "deleted",
       "the last slot is handed back to nobody"},
      {"nvgpu_gemm_nvgpu_gemm_kernel: bar.sync 0 (2): deleted",
       "wgmma.wait_group covers the products of all four warps"},
      {"tcgen05: fence.proxy.async.shared::cta (2): deleted",
       "what threads wrote was fenced before the first product"},
      {"tcgen05: tcgen05.fence::before_thread_sync (2): deleted",
       "to free tensor memory asks for no fence"},
      {"tcgen05_pair: fence.mbarrier_init.release.cluster: deleted",
       "the proxy fence and the cluster barrier behind it order the init too"},
      {"tcgen05_pair: bar.sync 0: deleted", "a cluster barrier follows"},
      {"tcgen05_pair: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 "
       "%p6, [ready], 0: asks once",
       "all have arrived when it asks"},
      {"tcgen05_pair: bar.sync 0 (2): deleted", "a cluster barrier follows"},
      {"tcgen05_pair: barrier.cluster.wait.acquire.aligned (2): deleted",
       "a pair frees together, each CTA behind its own barrier"},
      {"triton_matmul_matmul: cp.async.commit_group: deleted",
       "its copies join the next group, which is waited for too"},
      {"triton_matmul_matmul: bar.sync 0 (2): deleted",
       "wgmma.wait_group covers the products of all four warps"},
      {"reductions_grid_sum: bar.sync 0 (2): deleted",
       "only thread 0, which wrote the word, uses what is read"},
      {"cluster: barrier.cluster.wait.aligned: deleted",
       "nobody touches another CTA's memory after it"},
      {"cluster_exit: mbarrier.init.shared.b64 [done], 1: one more",
       "nobody waits for it"},
      {"cluster_exit: fence.mbarrier_init.release.cluster: deleted",
       "the cluster barrier behind it has release and acquire"},
      {"cluster_exit: mbarrier.arrive.release.cluster.shared::cluster.b64 _, "
       "[%r9]: deleted",
       "nobody waits for it"},
      {"cluster_tail: mbarrier.init.shared.b64 [first], 2: one more",
       "nobody waits for it"},
      {"cluster_tail: fence.mbarrier_init.release.cluster: deleted",
       "the cluster barrier behind it has release and acquire"},
      {"cluster_tail: mbarrier.arrive.shared::cluster.b64 _, [%r4]: deleted",
       "nobody waits for it"},
      {"counter_reset: fence.acq_rel.gpu: deleted",
       "nobody reads what was stored before it"},
      {"counter_reset: fence.acq_rel.gpu: narrower",
       "nobody reads what was stored before it"},
      {"counter_reset: fence.acq_rel.gpu (2): deleted",
       "the atomic itself comes before the store, and has seen the others"},
      {"counter_reset: fence.acq_rel.gpu (2): narrower",
       "the atomic itself comes before the store, and has seen the others"},
      {"heeded: bar.warp.sync 0xffffffff: deleted",
       "each lane has waited for the copy itself"},
      {"specialized: mbarrier.arrive.shared.b64 _, [%r10], 1 (2): deleted",
       "the last slot is handed back to nobody"},
      {"specialized: wgmma.wait_group.sync.aligned 0 (2): deleted",
       "the wait in the loop covers every product"},
      {"specialized: wgmma.wait_group.sync.aligned 0 (2): one group later",
       "the wait in the loop covers every product"},
      {"cluster_slot: barrier.cluster.wait.aligned: deleted",
       "each CTA has waited for the other's last access"},
      {"st_async: fence.mbarrier_init.release.cluster: deleted",
       "the cluster barrier behind it has release and acquire"},
      {"st_async: barrier.cluster.wait.aligned (3): deleted",
       "the other CTA has waited for the last store"},
      {"wgmma: bar.sync 0 (2): deleted",
       "wgmma.wait_group covers the products of all four warps"},
      {"wgmma: wgmma.fence.sync.aligned (2): deleted",
       "no register was touched since the product before"}};
  redundant.merge(tritonRedundant());
  redundant.merge(tilelangRedundant());
  return redundant;
}

} // namespace kiln
