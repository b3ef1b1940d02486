// An inclusive scan of each CTA's elements: shuffles inside a warp, shared
// memory between warps.
extern "C" __global__ void block_scan(const int *in, int *out, int *totals) {
  __shared__ int ofWarp[32];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int value = in[i];
  for (int offset = 1; offset < 32; offset *= 2) {
    int other = __shfl_up_sync(0xffffffff, value, offset);
    if (lane >= offset)
      value += other;
  }
  if (lane == 31)
    ofWarp[warp] = value;
  __syncthreads();
  if (warp == 0) {
    int sum = lane < blockDim.x / 32 ? ofWarp[lane] : 0;
    for (int offset = 1; offset < 32; offset *= 2) {
      int other = __shfl_up_sync(0xffffffff, sum, offset);
      if (lane >= offset)
        sum += other;
    }
    ofWarp[lane] = sum;
  }
  __syncthreads();
  if (warp > 0)
    value += ofWarp[warp - 1];
  out[i] = value;
  if (threadIdx.x == blockDim.x - 1)
    totals[blockIdx.x] = value;
}
