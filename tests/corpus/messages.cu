// Messages: printf and assert as nvcc emits them.
#include <cassert>
#include <cstdio>

extern "C" __global__ void greet(int count) {
  if (threadIdx.x < count)
    printf("thread %d of %u: %5.2f %s %lld %c %%\n", threadIdx.x, blockDim.x,
           threadIdx.x * 0.25, threadIdx.x % 2 ? "odd" : "even",
           -1000000000000ll * threadIdx.x, 'a' + threadIdx.x);
}

extern "C" __global__ void check(const int *in) {
  assert(in[threadIdx.x] >= 0);
}
