// A tiled product for sm_80: cp.async into two stages, ldmatrix, mma.sync.
//
// C[m][n] = A[m][k] * B[n][k]: 64 x 64 tiles, 32 along k, four warps.
#include <cuda_fp16.h>
#include <cstdint>

constexpr int kTile = 64, kStep = 32, kPad = 8, kRow = kStep + kPad;

__device__ static void copy_async(void *to, const void *from) {
  auto address = (uint32_t)__cvta_generic_to_shared(to);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address),
               "l"(from));
}

__device__ static void load_stage(half (*tile)[kRow], const half *from,
                                  int pitch) {
  for (int i = threadIdx.x; i < kTile * kStep / 8; i += blockDim.x) {
    int row = i / (kStep / 8), column = i % (kStep / 8) * 8;
    copy_async(&tile[row][column], from + row * pitch + column);
  }
}

__device__ static void load_matrix(uint32_t (&to)[4], const half *row) {
  auto address = (uint32_t)__cvta_generic_to_shared(row);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address));
}

extern "C" __global__ void __launch_bounds__(128)
    mma_gemm(const half *a, const half *b, float *c, int n, int k) {
  __shared__ __align__(16) half tile_a[2][kTile][kRow], tile_b[2][kTile][kRow];
  a += blockIdx.y * kTile * k;
  b += blockIdx.x * kTile * k;
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  float sums[8][4] = {};
  load_stage(tile_a[0], a, k);
  load_stage(tile_b[0], b, k);
  asm volatile("cp.async.commit_group;");
  for (int step = 0; step * kStep < k; ++step) {
    int stage = step & 1;
    if ((step + 1) * kStep < k) {
      load_stage(tile_a[stage ^ 1], a + (step + 1) * kStep, k);
      load_stage(tile_b[stage ^ 1], b + (step + 1) * kStep, k);
    }
    asm volatile("cp.async.commit_group;");
    asm volatile("cp.async.wait_group 1;");
    __syncthreads();
    for (int inner = 0; inner < kStep; inner += 16) {
      uint32_t fragment_a[4], fragment_b[4];
      load_matrix(fragment_a, &tile_a[stage][warp * 16 + lane % 16]
                                     [inner + lane / 16 * 8]);
      for (int pair = 0; pair < 4; ++pair) {
        load_matrix(fragment_b,
                    &tile_b[stage][pair * 16 + lane % 8 + lane / 16 * 8]
                           [inner + lane / 8 % 2 * 8]);
        for (int half = 0; half < 2; ++half) {
          float(&sum)[4] = sums[pair * 2 + half];
          asm volatile(
              "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
              "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
              : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
              : "r"(fragment_a[0]), "r"(fragment_a[1]), "r"(fragment_a[2]),
                "r"(fragment_a[3]), "r"(fragment_b[half * 2]),
                "r"(fragment_b[half * 2 + 1]));
        }
      }
    }
    __syncthreads();
  }
  for (int column = 0; column < 8; ++column)
    for (int i = 0; i < 4; ++i) {
      int row = blockIdx.y * kTile + warp * 16 + lane / 4 + i / 2 * 8;
      int at = blockIdx.x * kTile + column * 8 + lane % 4 * 2 + i % 2;
      c[row * n + at] = sums[column][i];
    }
}
