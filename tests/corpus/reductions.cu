// Reductions: of a block by shared memory, of a warp by shuffles and by redux,
// and of a grid by its last block.
#include <cuda_runtime.h>

extern "C" __global__ void block_sum(const float *in, float *out, int count) {
  __shared__ float partial[256];
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
       i += gridDim.x * blockDim.x)
    sum += in[i];
  partial[threadIdx.x] = sum;
  __syncthreads();
  for (int step = blockDim.x / 2; step > 0; step /= 2) {
    if (threadIdx.x < step)
      partial[threadIdx.x] += partial[threadIdx.x + step];
    __syncthreads();
  }
  if (threadIdx.x == 0)
    out[blockIdx.x] = partial[0];
}

/// Per warp: sum and largest by shuffles, smallest and bits by redux, and how
/// many lanes hold the value of the first.
extern "C" __global__ void warp_reduce(const int *in, int *out) {
  int thread = blockIdx.x * blockDim.x + threadIdx.x;
  int value = in[thread], sum = value, most = value;
  for (int step = 16; step > 0; step /= 2) {
    sum += __shfl_xor_sync(0xffffffffu, sum, step);
    most = max(most, __shfl_down_sync(0xffffffffu, most, step));
  }
  int least = __reduce_min_sync(0xffffffffu, value);
  unsigned bits = __reduce_or_sync(0xffffffffu, (unsigned)value);
  unsigned same = __match_any_sync(0xffffffffu, value);
  unsigned odd = __ballot_sync(0xffffffffu, value & 1);
  if (threadIdx.x % 32 == 0) {
    int *row = out + thread / 32 * 6;
    row[0] = sum;
    row[1] = most;
    row[2] = least;
    row[3] = (int)bits;
    row[4] = __popc(same);
    row[5] = __popc(odd);
  }
}

__device__ unsigned blocks_done = 0;

/// The block that finishes last adds what the others have left.
extern "C" __global__ void grid_sum(const float *in, volatile float *partial,
                                    float *out, int count) {
  __shared__ float sums[8];
  __shared__ bool is_last;
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
       i += gridDim.x * blockDim.x)
    sum += in[i];
  for (int step = 16; step > 0; step /= 2)
    sum += __shfl_down_sync(0xffffffffu, sum, step);
  if (threadIdx.x % 32 == 0)
    sums[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    float block = 0;
    for (int i = 0; i < blockDim.x / 32; ++i)
      block += sums[i];
    partial[blockIdx.x] = block;
    __threadfence();
    unsigned before = atomicInc(&blocks_done, gridDim.x - 1);
    is_last = before == gridDim.x - 1;
  }
  __syncthreads();
  if (!is_last || threadIdx.x != 0)
    return;
  __threadfence();
  float total = 0;
  for (int i = 0; i < gridDim.x; ++i)
    total += partial[i];
  *out = total;
}
