// Locks: threads of one warp and of many blocks that exclude each other.
#include <cuda_runtime.h>

__device__ int lock = 0;

/// A critical section in the loop, as lanes of one warp need it.
extern "C" __global__ void spin_lock(volatile int *count, volatile int *order) {
  bool is_done = false;
  while (!is_done) {
    if (atomicCAS(&lock, 0, 1) == 0) {
      __threadfence();
      int ticket = *count;
      order[ticket] = blockIdx.x * blockDim.x + threadIdx.x;
      *count = ticket + 1;
      __threadfence();
      atomicExch(&lock, 0);
      is_done = true;
    }
  }
}
