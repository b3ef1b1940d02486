// The source that steps.ptx says it comes from.
__device__ __noinline__ unsigned twice(unsigned value) {
    return value + value;
}




__global__ void steps(unsigned *out) {
  __shared__ unsigned tile[128]; unsigned tid = threadIdx.x, value = tid;
  if (tid == 0)
    init(&ready, 128);
  __syncthreads();
  for (int i = 0; i < 4; ++i) {
    value = twice(value);
    tile[tid] = value;
  }
  auto token = ready.arrive();
  ready.wait(std::move(token));
  if (tid & 1)
    value += 1000;

  out[blockIdx.x * blockDim.x + tid] = value;
}
