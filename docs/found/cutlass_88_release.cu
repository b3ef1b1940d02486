// cutlass_88_release: a slot is handed back while a wgmma still reads it.
// finds: wgmma-operand-reuse error
#include <cstdint>
#ifdef FIXED
#define LEFT "0"
#else
#define LEFT "1"
#endif

__device__ void wait(uint32_t bar, int parity) {
  for (int done = 0; !done;)
    asm volatile("{ .reg .pred p;\n"
                 "mbarrier.try_wait.parity.shared.b64 p, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, p; }"
                 : "=r"(done) : "r"(bar), "r"(parity) : "memory");
}

__global__ void gradients(const char *in, int tiles) {
  __shared__ alignas(128) char slot[2304]; // A: 64 x 16, B: 8 x 16
  __shared__ uint64_t bars[2];
  uint32_t full = __cvta_generic_to_shared(bars), empty = full + 8;
  uint32_t at = __cvta_generic_to_shared(slot);
  if (threadIdx.x == 0)
    asm volatile("mbarrier.init.shared.b64 [%0], 1;\n"
                 "mbarrier.init.shared.b64 [%1], 128;\n"
                 "fence.mbarrier_init.release.cluster;" ::"r"(full),
                 "r"(empty));
  __syncthreads();
  float d[4] = {};
  uint64_t a = at >> 4 | 8ull << 16 | 16ull << 32, b = a + (2048 >> 4);
  for (int i = 0; i < tiles; ++i)
    if (threadIdx.x == 128) {
      wait(empty, (i + 1) % 2);
      asm volatile(
          "mbarrier.arrive.expect_tx.shared.b64 _, [%0], 2304;\n" // finding
          "cp.async.bulk.shared::cluster.global.mbarrier"
          "::complete_tx::bytes [%1], [%2], 2304, [%0];" ::"r"(full),
          "r"(at), "l"(in + i * 2304));
    } else if (threadIdx.x < 128) {
      wait(full, i % 2);
      asm volatile("wgmma.fence.sync.aligned;\n"
                   "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 "
                   "{%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;\n"
                   "wgmma.commit_group.sync.aligned;\n"
                   "wgmma.wait_group.sync.aligned " LEFT ";\n"
                   "mbarrier.arrive.shared.b64 _, [%6];"
                   : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                   : "l"(a), "l"(b), "r"(empty));
    }
  if (threadIdx.x < 128)
    asm volatile("wgmma.wait_group.sync.aligned 0;");
}

int main() {
  char *in;
  cudaMalloc(&in, 4 * 2304);
  gradients<<<1, 256>>>(in, 4);
  return cudaDeviceSynchronize();
}
