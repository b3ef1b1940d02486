// repeated: launches that are not run again, because an earlier one tells what
// comes of them, and those that are.
// status: 0
// stderr: 20 launches were not run again: kernel, arguments and memory were those of an earlier one
#include "check.h"

#include <cstring>

/// Long enough to be worth it.
__host__ __device__ unsigned slowly(unsigned x) {
  for (unsigned i = 0; i < 40000; ++i)
    x = (x ^ x >> 7) * 1664525 + i;
  return x;
}

constexpr int kCount = 4096, kBlock = 128;

__global__ void convert(unsigned *y, const unsigned *x) {
  int i = blockIdx.x * kBlock + threadIdx.x;
  y[i] = slowly(x[i]);
}
__global__ void add(unsigned *y, const unsigned *x) {
  int i = blockIdx.x * kBlock + threadIdx.x;
  y[i] += slowly(x[i]) & 1;
}
__global__ void count(unsigned *y, const unsigned *x) {
  int i = blockIdx.x * kBlock + threadIdx.x;
  atomicAdd(y, slowly(x[i]) & 1);
}
__global__ void timed(unsigned *y, const unsigned *x) {
  int i = blockIdx.x * kBlock + threadIdx.x;
  y[i] = slowly(x[i]) + (clock64() < 0);
}
__global__ void printing(unsigned *y, const unsigned *x) {
  int i = blockIdx.x * kBlock + threadIdx.x;
  y[i] = slowly(x[i]);
  if (i == 0)
    printf("printed\n");
}

static unsigned *x, *y, host[kCount];

template <typename Kernel> static void launch(Kernel kernel, int times) {
  for (int i = 0; i < times; ++i)
    kernel<<<kCount / kBlock, kBlock>>>(y, x);
  OK(cudaDeviceSynchronize());
}

static unsigned first() {
  OK(cudaMemcpy(host, y, sizeof(host), cudaMemcpyDeviceToHost));
  return host[0];
}

int main() {
  OK(cudaMallocManaged(&x, sizeof(host)));
  OK(cudaMalloc(&y, sizeof(host)));
  for (int i = 0; i < kCount; ++i)
    x[i] = i;
  // The second one finds what the first has left, as all others do: 8.
  launch(convert, 10);
  CHECK(first() == slowly(0));

  // Other memory: run again, then run and watched, then known: 1.
  for (int i = 0; i < 3; ++i) {
    OK(cudaMemset(y, 0, sizeof(host)));
    launch(convert, 1);
    CHECK(first() == slowly(0));
  }

  // The host writes what it shares with kernels, and nobody tells.
  x[0] = 77;
  launch(convert, 1);
  CHECK(first() == slowly(77));
  x[0] = 0;

  // What changes memory is run each time.
  OK(cudaMemset(y, 0, sizeof(host)));
  launch(add, 6);
  unsigned odd = slowly(0) & 1;
  CHECK(first() == 6 * odd);

  // Not where memory is put back before each: the second of them is watched,
  // and those behind it are known, 4 of them.
  unsigned ones = 0;
  for (int i = 0; i < kCount; ++i)
    ones += slowly(x[i]) & 1;
  for (int i = 0; i < 6; ++i) {
    OK(cudaMemset(y, 0, sizeof(int)));
    launch(count, 1);
    CHECK(first() == ones);
  }

  // Clocks go on, and what is printed is printed.
  launch(timed, 4);
  launch(printing, 4);

  // Memory that was freed is not the memory that came in its place.
  OK(cudaFree(y));
  OK(cudaMalloc(&y, 2 * sizeof(host)));
  launch(convert, 1);
  CHECK(first() == slowly(0));

  // In a graph too: two are run and 7 are not.
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  OK(cudaStreamCreate(&stream));
  OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  convert<<<kCount / kBlock / 2, kBlock, 0, stream>>>(y, x);
  OK(cudaStreamEndCapture(stream, &graph));
  OK(cudaGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < 9; ++i)
    OK(cudaGraphLaunch(exec, stream));
  OK(cudaStreamSynchronize(stream));
  CHECK(first() == slowly(0));
  std::printf("PASS\n");
}
