// templates: one cause is one finding, in however many instances of a template,
// launches and CTAs it is seen, and names of templates fit on a line.
// status: 2
// stderr: launch 1 of void shift<Options<First, SomethingWithALongName, \.\.\.>, 3>\(int\*\), grid 2x1x1
// stderr: error race at .*templates.cu:[0-9]+:
// stderr: error race was found in 4 launches
// stderr: 4 launches, 4 checked: 1 error, 0 warnings
#include "check.h"

struct First {};
struct SomethingWithALongName {};
template <typename... Parts> struct Options {};
using Many = Options<First, SomethingWithALongName, SomethingWithALongName,
                     SomethingWithALongName, SomethingWithALongName>;

template <typename Chosen, int By> __global__ void shift(int *x) {
  __shared__ int tile[64];
  x += 64 * blockIdx.x;
  tile[threadIdx.x] = 0;
  __syncthreads();
  tile[threadIdx.x] = x[threadIdx.x];
  x[threadIdx.x] = tile[63 - threadIdx.x] + By;
}

int main() {
  int *x;
  OK(cudaMalloc(&x, 128 * sizeof(int)));
  OK(cudaMemset(x, 0, 128 * sizeof(int)));
  for (int i = 0; i < 2; ++i) {
    shift<Many, 3><<<2, 64>>>(x);
    shift<Many, 4><<<2, 64>>>(x);
  }
  OK(cudaDeviceSynchronize());
  std::printf("PASS\n");
}
