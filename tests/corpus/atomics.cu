// Atomics: a histogram that its last block hands on, a compaction by tickets, a
// maximum by compare-and-swap, and counts that are read in every round.
#include <cuda_runtime.h>

__device__ unsigned parts_done = 0;

/// Blocks add their bins to those of the grid; the last one copies them.
extern "C" __global__ void grid_histogram(const unsigned char *in,
                                          unsigned *sums, unsigned *out,
                                          int count) {
  __shared__ unsigned bins[256];
  __shared__ bool is_last;
  for (int i = threadIdx.x; i < 256; i += blockDim.x)
    bins[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
       i += gridDim.x * blockDim.x)
    atomicAdd(&bins[in[i]], 1u);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x)
    atomicAdd(&sums[i], bins[i]);
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0)
    is_last = atomicInc(&parts_done, gridDim.x - 1) == gridDim.x - 1;
  __syncthreads();
  if (!is_last)
    return;
  __threadfence();
  for (int i = threadIdx.x; i < 256; i += blockDim.x)
    out[i] = atomicAdd(&sums[i], 0u);
}

/// Numbers below the limit, in any order; each block draws its tickets from its
/// own counter, and a place for them from that of the grid.
extern "C" __global__ void compact(const int *in, int *out, unsigned *total,
                                   int count, int limit) {
  __shared__ unsigned found, first;
  for (int base = blockIdx.x * blockDim.x; base < count;
       base += gridDim.x * blockDim.x) {
    if (threadIdx.x == 0)
      found = 0;
    __syncthreads();
    int i = base + threadIdx.x;
    unsigned ticket = 0;
    bool is_wanted = i < count && in[i] < limit;
    if (is_wanted)
      ticket = atomicAdd(&found, 1u);
    __syncthreads();
    if (threadIdx.x == 0)
      first = atomicAdd(total, found);
    __syncthreads();
    if (is_wanted)
      out[first + ticket] = in[i];
  }
}

/// The largest of a block by atomicCAS, as there is no atomicMax of floats.
extern "C" __global__ void float_max(const float *in, float *out, int count) {
  __shared__ int largest;
  if (threadIdx.x == 0)
    largest = __float_as_int(-1e30f);
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
       i += gridDim.x * blockDim.x) {
    int seen = atomicAdd(&largest, 0);
    while (in[i] > __int_as_float(seen)) {
      int before = atomicCAS(&largest, seen, __float_as_int(in[i]));
      if (before == seen)
        break;
      seen = before;
    }
  }
  __syncthreads();
  if (threadIdx.x == 0)
    out[blockIdx.x] = __int_as_float(largest);
}

/// How many of each digit stand before a thread's own, round after round: as a
/// radix sort counts.
extern "C" __global__ void digit_rounds(const unsigned *in, unsigned *out,
                                        int rounds) {
  __shared__ unsigned digits[16];
  unsigned sum = 0;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int round = 0; round < rounds; ++round) {
    if (threadIdx.x < 16)
      digits[threadIdx.x] = 0;
    __syncthreads();
    unsigned digit = in[i] >> 4 * (round & 7) & 15;
    atomicAdd(&digits[digit], 1u);
    __syncthreads();
    for (unsigned before = 0; before < digit; ++before)
      sum += digits[before];
    __syncthreads();
  }
  out[i] = sum;
}
