// narrow: what GeForce Blackwell has beside the others: floats of 4, 6 and 8
// bits with block scales, sparse products, accesses of 256 bits; against the
// host's own conversions and plain loops.
// status: 0
// arch: 120a
// options: --gpu rtx5090
#include "check.h"

#include <cmath>
#include <cstdint>
#include <cuda_fp16.h>
#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>

/// One warp: D (16 x 8) = A (16 x 32, e4m3) * B (32 x 8, e2m1, packed), each
/// row of A and column of B times a power of two.
__global__ void scaled(const uint8_t *a, const uint8_t *b, const uint8_t *scaleA,
                       const uint8_t *scaleB, float *d) {
  __shared__ alignas(16) uint8_t rows[16][32];
  __shared__ alignas(16) uint8_t columns[2][8][16]; // halves of K, padded
  int lane = threadIdx.x, group = lane / 4, inGroup = lane % 4;
  for (int i = 0; i < 16; ++i)
    rows[i][lane] = a[i * 32 + lane];
  if (lane < 16)
    for (int i = 0; i < 8; ++i)
      columns[lane / 8][lane % 8][i] = b[lane % 8 * 16 + lane / 8 * 8 + i];
  __syncwarp();
  auto address = [](const void *p) {
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
  };
  unsigned x[4], y[2];
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, "
               "[%4];"
               : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
               : "r"(address(&rows[lane % 16][lane / 16 * 16])));
  asm volatile("ldmatrix.sync.aligned.m8n16.x2.shared.b8x16.b4x16_p64 {%0, "
               "%1}, [%2];"
               : "=r"(y[0]), "=r"(y[1])
               : "r"(address(columns[lane / 8 % 2][lane % 8])));
  unsigned rowScale = scaleA[group + lane % 2 * 8], columnScale = scaleB[group];
  float sum[4] = {};
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale."
      "scale_vec::1X.f32.e4m3.e2m1.f32.ue8m0 {%0, %1, %2, %3}, {%4, %5, %6, "
      "%7}, {%8, %9}, {%0, %1, %2, %3}, %10, {0, 0}, %11, {0, 0};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0] << 2),
        "r"(y[1] << 2), "r"(rowScale), "r"(columnScale));
  for (int i = 0; i < 4; ++i)
    d[(group + i / 2 * 8) * 8 + 2 * inGroup + i % 2] = sum[i];
}

/// Of each four of A's columns the second and the fourth are there.
__global__ void sparse(const __half *a, const __half *b, float *d) {
  int lane = threadIdx.x, group = lane / 4, inGroup = lane % 4;
  unsigned x[4], y[4];
  for (int i = 0; i < 4; ++i) {
    int row = group + i % 2 * 8, column = 2 * inGroup + i / 2 * 8;
    __half2 pair = {a[row * 16 + column], a[row * 16 + column + 1]};
    x[i] = *reinterpret_cast<unsigned *>(&pair);
    int k = 2 * inGroup + 8 * i;
    pair = {b[k * 8 + group], b[(k + 1) * 8 + group]};
    y[i] = *reinterpret_cast<unsigned *>(&pair);
  }
  float sum[4] = {};
  asm volatile("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16."
               "f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9, %10, "
               "%11}, {%0, %1, %2, %3}, %12, 0;"
               : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
               : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]),
                 "r"(y[1]), "r"(y[2]), "r"(y[3]), "r"(0xdddddddd));
  for (int i = 0; i < 4; ++i)
    d[(group + i / 2 * 8) * 8 + 2 * inGroup + i % 2] = sum[i];
}

/// 8 floats of each thread become pairs of every narrow type.
__global__ void convert(const float *in, uint32_t *out) {
  float x[8];
  const float *from = in + 8 * threadIdx.x;
  asm volatile("ld.global.v8.f32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
               : "=f"(x[0]), "=f"(x[1]), "=f"(x[2]), "=f"(x[3]), "=f"(x[4]),
                 "=f"(x[5]), "=f"(x[6]), "=f"(x[7])
               : "l"(from)
               : "memory");
  uint32_t y[8];
  for (int i = 0; i < 4; ++i) {
    float2 pair = {x[2 * i], x[2 * i + 1]};
    y[2 * i] =
        __nv_cvt_float2_to_fp4x2(pair, __NV_E2M1, cudaRoundNearest) |
        __nv_cvt_float2_to_fp6x2(pair, __NV_E2M3, cudaRoundNearest) << 8;
    y[2 * i + 1] =
        __nv_cvt_float2_to_fp6x2(pair, __NV_E3M2, cudaRoundNearest) |
        __nv_cvt_float2_to_e8m0x2(pair, __NV_SATFINITE, cudaRoundPosInf) << 16;
  }
  asm volatile("st.global.v8.b32 [%0], {%1, %2, %3, %4, %5, %6, %7, %8};" ::"l"(
                   out + 8 * threadIdx.x),
               "r"(y[0]), "r"(y[1]), "r"(y[2]), "r"(y[3]), "r"(y[4]),
               "r"(y[5]), "r"(y[6]), "r"(y[7])
               : "memory");
}

static double fp8(uint8_t bits) {
  return __half2float(__half(__nv_cvt_fp8_to_halfraw(bits, __NV_E4M3)));
}
static double fp4(uint8_t bits) {
  return __half2float(__half(__nv_cvt_fp4_to_halfraw(bits, __NV_E2M1)));
}

template <typename T> static T *shared(std::size_t count) {
  T *data;
  OK(cudaMallocManaged(&data, count * sizeof(T)));
  return data;
}

int main() {
  auto *a = shared<uint8_t>(16 * 32), *b = shared<uint8_t>(8 * 16);
  auto *scaleA = shared<uint8_t>(16), *scaleB = shared<uint8_t>(8);
  auto *d = shared<float>(128);
  for (int i = 0; i < 16 * 32; ++i)
    a[i] = 0x30 + i * 7 % 16 + (i % 3 ? 0x80 : 0);
  for (int i = 0; i < 8 * 16; ++i)
    b[i] = i * 29;
  for (int i = 0; i < 16; ++i)
    scaleA[i] = 124 + i % 5;
  for (int i = 0; i < 8; ++i)
    scaleB[i] = 126 + i % 3;
  scaled<<<1, 32>>>(a, b, scaleA, scaleB, d);
  OK(cudaDeviceSynchronize());
  for (int row = 0; row < 16; ++row)
    for (int column = 0; column < 8; ++column) {
      double sum = 0;
      for (int k = 0; k < 32; ++k)
        sum += fp8(a[row * 32 + k]) *
               fp4(b[column * 16 + k / 2] >> 4 * (k % 2) & 15);
      sum = std::ldexp(sum, scaleA[row] - 127 + scaleB[column] - 127);
      CHECK(d[row * 8 + column] == float(sum));
    }
  auto *x = shared<__half>(16 * 16), *y = shared<__half>(32 * 8);
  for (int i = 0; i < 16 * 16; ++i)
    x[i] = __float2half(i % 9 - 4);
  for (int i = 0; i < 32 * 8; ++i)
    y[i] = __float2half(i % 7 - 3);
  sparse<<<1, 32>>>(x, y, d);
  OK(cudaDeviceSynchronize());
  for (int row = 0; row < 16; ++row)
    for (int column = 0; column < 8; ++column) {
      float sum = 0;
      for (int i = 0; i < 16; ++i)
        sum += __half2float(x[row * 16 + i]) *
               __half2float(y[(i / 2 * 4 + (i % 2 ? 3 : 1)) * 8 + column]);
      CHECK(d[row * 8 + column] == sum);
    }
  auto *in = shared<float>(32 * 8);
  auto *out = shared<uint32_t>(32 * 8);
  for (int i = 0; i < 32 * 8; ++i)
    in[i] = (i % 2 ? -1 : 1) * std::ldexp(1 + i % 17 / 17.0f, i % 11 - 7);
  convert<<<1, 32>>>(in, out);
  OK(cudaDeviceSynchronize());
  for (int i = 0; i < 32 * 4; ++i) {
    float2 pair = {in[2 * i], in[2 * i + 1]};
    CHECK(out[2 * i] ==
          (__nv_cvt_float2_to_fp4x2(pair, __NV_E2M1, cudaRoundNearest) |
           __nv_cvt_float2_to_fp6x2(pair, __NV_E2M3, cudaRoundNearest) << 8));
    CHECK(out[2 * i + 1] ==
          (uint32_t(__nv_cvt_float2_to_fp6x2(pair, __NV_E3M2,
                                             cudaRoundNearest)) |
           uint32_t(__nv_cvt_float2_to_e8m0x2(pair, __NV_SATFINITE,
                                              cudaRoundPosInf))
               << 16));
  }
  std::puts("PASS");
}
