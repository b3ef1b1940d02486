// reset: cudaDeviceReset takes everything away, and the program begins again.
// status: 0
// stderr: 2 calls were not supported: cudaMallocArray, cudaIpcGetMemHandle
#include "check.h"

#include <cstring>

__device__ int counter = 5;
__global__ void count() { ++counter; }

static int counted() {
  int value = 0;
  OK(cudaMemcpyFromSymbol(&value, counter, sizeof(int)));
  return value;
}

int main() {
  count<<<1, 1>>>();
  CHECK(counted() == 6);
  void *memory;
  cudaStream_t stream;
  cudaEvent_t event;
  OK(cudaMalloc(&memory, 64));
  OK(cudaStreamCreate(&stream));
  OK(cudaEventCreate(&event));
  OK(cudaDeviceReset());
  CHECK(cudaFree(memory) == cudaErrorInvalidValue);
  CHECK(cudaStreamSynchronize(stream) == cudaErrorInvalidResourceHandle);
  CHECK(cudaEventRecord(event) == cudaErrorInvalidResourceHandle);
  CHECK(cudaGetLastError() == cudaErrorInvalidResourceHandle);
  CHECK(counted() == 5);
  count<<<1, 1>>>();
  CHECK(counted() == 6);

  // Errors as CUDA names them, and calls that are not supported.
  CHECK(!std::strcmp(cudaGetErrorName(cudaErrorStreamCaptureUnjoined),
                     "cudaErrorStreamCaptureUnjoined"));
  CHECK(!std::strcmp(cudaGetErrorString(cudaErrorIllegalAddress),
                     "an illegal memory access was encountered"));
  CHECK(!std::strcmp(cudaGetErrorString(cudaError_t(12345)),
                     "unrecognized error code"));
  cudaArray_t array;
  cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  CHECK(cudaMallocArray(&array, &format, 16) == cudaErrorNotSupported);
  cudaIpcMemHandle_t handle;
  CHECK(cudaIpcGetMemHandle(&handle, memory) == cudaErrorNotSupported);
  std::printf("PASS\n");
}
