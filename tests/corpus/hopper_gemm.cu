// A product for sm_90a in the manner of CUTLASS: one warp loads by TMA, one
// warpgroup multiplies by wgmma, mbarriers hand slots to and fro.
//
// C[m][n] = A[m][k] * B[n][k]: 64 x 64 tiles, 64 along k, four stages.
#include <cuda.h>
#include <cuda_fp16.h>
#include <cstdint>

constexpr int kTile = 64, kStages = 4;
constexpr uint32_t kBytes = kTile * kTile * 2;

__device__ static uint32_t address_of(const void *pointer) {
  return (uint32_t)__cvta_generic_to_shared(pointer);
}

__device__ static void init(uint64_t *barrier, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(
                   address_of(barrier)),
               "r"(count));
}

__device__ static void wait(uint64_t *barrier, uint32_t parity) {
  asm volatile("{\n"
               ".reg .pred P1;\n"
               "LAB_WAIT:\n"
               "mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n"
               "@P1 bra DONE;\n"
               "bra LAB_WAIT;\n"
               "DONE:\n"
               "}" ::"r"(address_of(barrier)),
               "r"(parity));
}

__device__ static void arrive(uint64_t *barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(
      address_of(barrier)));
}

__device__ static void expect(uint64_t *barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                   address_of(barrier)),
               "r"(bytes));
}

__device__ static void load(const CUtensorMap *map, uint64_t *barrier,
                            void *tile, int x, int y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::"
      "bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(address_of(tile)),
      "l"(map), "r"(address_of(barrier)), "r"(x), "r"(y)
      : "memory");
}

/// K-major, 128-byte swizzle, rows of eight 1024 bytes apart.
__device__ static uint64_t descriptor(const void *tile) {
  uint64_t start = (address_of(tile) & 0x3ffff) >> 4;
  return start | (uint64_t)1 << 16 | (uint64_t)64 << 32 | (uint64_t)1 << 62;
}

__device__ static void multiply(float (&d)[32], uint64_t a, uint64_t b) {
  asm volatile(
      "{\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
      "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, "
      "%32, %33, 1, 1, 1, 0, 0;\n"
      "}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]),
        "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]),
        "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
        "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]),
        "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]),
        "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]),
        "+f"(d[31])
      : "l"(a), "l"(b));
}

extern "C" __global__ void __launch_bounds__(256)
    hopper_gemm(const __grid_constant__ CUtensorMap map_a,
                const __grid_constant__ CUtensorMap map_b, float *c, int n,
                int k) {
  extern __shared__ __align__(1024) uint8_t memory[];
  auto *tiles_a = (half *)memory;
  auto *tiles_b = tiles_a + kStages * kTile * kTile;
  __shared__ uint64_t full[kStages], empty[kStages];
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) {
      init(&full[i], 1);
      init(&empty[i], 128);
    }
    asm volatile("fence.mbarrier_init.release.cluster;");
  }
  __syncthreads();
  int steps = k / kTile;
  if (threadIdx.x >= 128) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x != 128)
      return;
    for (int step = 0; step < steps; ++step) {
      int slot = step % kStages;
      wait(&empty[slot], step / kStages % 2 ^ 1);
      expect(&full[slot], 2 * kBytes);
      load(&map_a, &full[slot], tiles_a + slot * kTile * kTile, step * kTile,
           blockIdx.y * kTile);
      load(&map_b, &full[slot], tiles_b + slot * kTile * kTile, step * kTile,
           blockIdx.x * kTile);
    }
    return;
  }
  asm volatile("setmaxnreg.inc.sync.aligned.u32 248;");
  float d[32] = {};
  for (int step = 0; step < steps; ++step) {
    int slot = step % kStages;
    wait(&full[slot], step / kStages % 2);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    for (int i = 0; i < kTile / 16; ++i)
      multiply(d, descriptor(tiles_a + slot * kTile * kTile + i * 16),
               descriptor(tiles_b + slot * kTile * kTile + i * 16));
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    arrive(&empty[slot]);
  }
  int lane = threadIdx.x % 32;
  int row = blockIdx.y * kTile + threadIdx.x / 32 * 16 + lane / 4;
  for (int i = 0; i < 32; ++i) {
    int column = blockIdx.x * kTile + i / 4 * 8 + lane % 4 * 2 + i % 2;
    c[(row + i / 2 % 2 * 8) * n + column] = d[i];
  }
}
