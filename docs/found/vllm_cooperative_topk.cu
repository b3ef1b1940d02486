// vllm_cooperative_topk: a relaxed wait for a bulk copy, and no fence behind
// it.
// finds: copy-not-awaited error
#include <cstdint>
#include <cuda_runtime.h>

#ifdef FIXED
#define SEMANTICS ".acquire.cta"
#else
#define SEMANTICS ".relaxed.cta"
#endif

__global__ void load(const int *in, int *out) {
  __shared__ alignas(16) int tile[64];
  __shared__ uint64_t full;
  uint32_t bar = __cvta_generic_to_shared(&full);
  uint32_t to = __cvta_generic_to_shared(tile);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;\n"
                 "fence.mbarrier_init.release.cluster;\n"
                 "mbarrier.arrive.expect_tx.shared.b64 _, [%0], 256;\n"
                 "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx"
                 "::bytes [%1], [%2], 256, [%0];" ::"r"(bar),
                 "r"(to), "l"(in)
                 : "memory");
  }
  __syncthreads();
  for (int done = 0; !done;)
    asm volatile("{ .reg .pred p;\n"
                 "mbarrier.try_wait.parity" SEMANTICS ".shared::cta.b64 "
                 "p, [%1], 0;\n"
                 "selp.u32 %0, 1, 0, p; }"
                 : "=r"(done)
                 : "r"(bar)
                 : "memory");
  out[threadIdx.x] = tile[threadIdx.x]; // finding
}

int main() {
  int *in, *out;
  cudaMalloc(&in, 256);
  cudaMemset(in, 1, 256);
  cudaMalloc(&out, 256);
  load<<<1, 64>>>(in, out);
  return cudaDeviceSynchronize();
}
