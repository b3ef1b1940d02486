// Arithmetic: pairs of halves, bfloats, eight-bit floats, doubles, the special
// functions, and integers of 64 bits.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

extern "C" __global__ void half_pairs(const half2 *a, const half2 *b,
                                      half2 *out, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count)
    return;
  half2 sum = __hadd2(a[i], b[i]), product = __hmul2(a[i], b[i]);
  half2 both = __hfma2(sum, product, a[i]);
  out[4 * i] = __hmax2(both, __hneg2(both));
  out[4 * i + 1] = __hsub2(__habs2(a[i]), __hmin2(a[i], b[i]));
  out[4 * i + 2] = __hgt2(a[i], b[i]);
  out[4 * i + 3] =
      __floats2half2_rn(__low2float(a[i]) * 2.0f, __high2float(b[i]));
}

extern "C" __global__ void conversions(const float *in, float *out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float value = in[i], *row = out + 8 * i;
  row[0] = __half2float(__float2half(value));
  row[1] = __bfloat162float(__float2bfloat16(value));
  row[2] = (float)__nv_fp8_e4m3(value);
  row[3] = (float)__nv_fp8_e5m2(value);
  row[4] = (float)(int)rintf(value);
  row[5] = (float)(long long)(value * 1024.0f);
  row[6] = __bfloat162float(__hfma(__float2bfloat16(value),
                                   __float2bfloat16(2.0f),
                                   __float2bfloat16(1.0f)));
  row[7] = (float)(unsigned char)(int)value;
}

extern "C" __global__ void doubles(const double *in, double *out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  double value = in[i], *row = out + 6 * i;
  row[0] = sqrt(value) + 1.0 / value;
  row[1] = exp(-value);
  row[2] = log(value);
  row[3] = sin(value) * cos(value);
  row[4] = fma(value, value, -value);
  row[5] = floor(value * 10.0) + fmod(value, 0.7);
}

extern "C" __global__ void singles(const float *in, float *out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float value = in[i], *row = out + 8 * i;
  row[0] = expf(-value);
  row[1] = logf(value);
  row[2] = sinf(value * 100.0f);
  row[3] = powf(value, 1.7f);
  row[4] = rsqrtf(value);
  row[5] = tanhf(value);
  row[6] = erff(value);
  row[7] = __expf(value) + __fdividef(1.0f, value);
}

extern "C" __global__ void wide(const unsigned long long *a,
                                const unsigned long long *b,
                                unsigned long long *out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned long long *row = out + 6 * i;
  row[0] = a[i] / b[i];
  row[1] = a[i] % b[i];
  row[2] = __umul64hi(a[i], b[i]);
  row[3] = (unsigned long long)((long long)a[i] / (long long)(b[i] | 1));
  row[4] = __brevll(a[i]) ^ (a[i] << (b[i] & 63));
  row[5] = __dp4a((int)a[i], (int)b[i], 7) + __byte_perm(a[i], b[i], 0x3615);
}
