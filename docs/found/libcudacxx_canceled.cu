// libcudacxx_canceled: one thread waits, .relaxed, for an answer that all
// threads read behind a barrier.
// finds: copy-not-awaited error
// arch: 100a
#include <cstdint>
#include <cuda_runtime.h>
#ifdef FIXED
#define SEMANTICS ".acquire.cta"
#else
#define SEMANTICS ".relaxed.cta"
#endif

__global__ void steal(int *out) {
  __shared__ alignas(16) uint64_t answer[2];
  __shared__ uint64_t arrived;
  uint32_t bar = __cvta_generic_to_shared(&arrived);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;\n"
                 "fence.mbarrier_init.release.cluster;\n"
                 "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier"
                 "::complete_tx::bytes.b128 [%1], [%0];\n"
                 "mbarrier.arrive.expect_tx.relaxed.cta.shared.b64 _, [%0], "
                 "16;" ::"r"(bar),
                 "r"((uint32_t)__cvta_generic_to_shared(answer))
                 : "memory");
    for (int done = 0; !done;)
      asm volatile("{ .reg .pred p;\n"
                   "mbarrier.try_wait.parity" SEMANTICS ".shared.b64 p, [%1], "
                   "0;\n"
                   "selp.u32 %0, 1, 0, p; }"
                   : "=r"(done)
                   : "r"(bar)
                   : "memory");
  }
  __syncthreads();
  int canceled;
  uint64_t low = answer[0], high = answer[1]; // finding
  asm volatile("{ .reg .b128 a;\n.reg .pred p;\n"
               "mov.b128 a, {%1, %2};\n"
               "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, a;\n"
               "selp.u32 %0, 1, 0, p; }"
               : "=r"(canceled)
               : "l"(low), "l"(high));
  out[blockIdx.x * 64 + threadIdx.x] = canceled;
}

int main() {
  int *out;
  cudaMalloc(&out, 4 * 64 * sizeof(int));
  steal<<<4, 64>>>(out);
  return cudaDeviceSynchronize();
}
