// cuda_samples_barrier: each row of threads initializes the barrier again.
// finds: mbarrier-reinitialized warning
#include <cuda/barrier>
#include <cuda_runtime.h>

__global__ void meet(int *out) {
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
#ifdef FIXED
  if (threadIdx.x == 0 && threadIdx.y == 0)
#else
  if (threadIdx.x == 0)
#endif
    init(&bar, blockDim.x * blockDim.y); // finding
  __syncthreads();
  bar.arrive_and_wait();
  out[threadIdx.y * blockDim.x + threadIdx.x] = 1;
}

int main() {
  int *out;
  cudaMalloc(&out, 256 * sizeof(int));
  meet<<<1, dim3(16, 16)>>>(out);
  return cudaDeviceSynchronize();
}
