// freed: a kernel uses memory that its stream has freed.
// status: 2
// stderr: launch 2 of bump\(int\*\)
// stderr: error use-after-free at .*freed.cu:9: .* byte 8 of buffer [0-9]+ \(64 bytes\), which the program has freed
// stderr: 2 launches, 2 checked: 1 error
#include "check.h"

__global__ void bump(int *x) {
  x[2] += 1;
}

int main() {
  cudaStream_t stream;
  OK(cudaStreamCreate(&stream));
  int *x;
  OK(cudaMallocAsync(&x, 64, stream));
  OK(cudaMemsetAsync(x, 0, 64, stream));
  bump<<<1, 1, 0, stream>>>(x);
  OK(cudaFreeAsync(x, stream));
  bump<<<1, 1, 0, stream>>>(x);
  CHECK(cudaStreamSynchronize(stream) == cudaErrorLaunchFailure);
  std::printf("PASS\n");
}
