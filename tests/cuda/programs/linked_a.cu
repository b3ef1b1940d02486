// linked: two objects with -rdc=true, whose kernels share functions, variables
// and names that are their own.
// status: 0
// nvcc: -rdc=true linked_b.cu
#include "check.h"

extern __device__ int twice(int x);
extern __device__ int calls;
static __device__ int own = 1;

__global__ void run(int *out) {
  *out = twice(20) + own;
  ++calls;
}
void run_other(int *out);

int main() {
  int *out, seen;
  OK(cudaMallocManaged(&out, 2 * sizeof(int)));
  run<<<1, 1>>>(out);
  run_other(out + 1);
  OK(cudaDeviceSynchronize());
  OK(cudaMemcpyFromSymbol(&seen, calls, sizeof(int)));
  CHECK(out[0] == 41 && out[1] == 4 && seen == 2);
  std::printf("PASS\n");
  return 0;
}
