// Control: a switch that becomes a table, local arrays, shared atomics.
#include <cuda_runtime.h>

extern "C" __global__ void switched(const int *in, int *out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int value = in[i], result = i;
  for (int turn = 0; turn < 3; ++turn) {
    switch ((value + turn) & 15) {
    case 0: result += 17; break;
    case 1: result *= 3; break;
    case 2: result ^= 0x55; break;
    case 3: result -= value; break;
    case 4: result = result << 2 | 1; break;
    case 5: result >>= 1; break;
    case 6: result = -result; break;
    case 7: result += value * value; break;
    case 8: result = __clz(result); break;
    case 9: result = __popc(result); break;
    case 10: result &= value; break;
    default: result |= 1; break;
    }
  }
  out[i] = result;
}

extern "C" __global__ void local_sort(const int *in, int *out) {
  int values[12];
  int *mine = out + (blockIdx.x * blockDim.x + threadIdx.x) * 12;
  const int *from = in + (blockIdx.x * blockDim.x + threadIdx.x) * 12;
  for (int i = 0; i < 12; ++i)
    values[i] = from[i];
  for (int i = 1; i < 12; ++i) {
    int value = values[i], at = i;
    while (at > 0 && values[at - 1] > value) {
      values[at] = values[at - 1];
      --at;
    }
    values[at] = value;
  }
  for (int i = 0; i < 12; ++i)
    mine[i] = values[i];
}

extern "C" __global__ void histogram(const unsigned char *in, unsigned *out,
                                     int count) {
  __shared__ unsigned bins[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x)
    bins[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
       i += gridDim.x * blockDim.x)
    atomicAdd(&bins[in[i]], 1u);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x)
    if (bins[i])
      atomicAdd(&out[i], bins[i]);
}
