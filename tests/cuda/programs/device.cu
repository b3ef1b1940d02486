// device: what the device says of itself, and how kernels fit on it.
// status: 0
#include "check.h"

__global__ void empty() {}
__global__ void __launch_bounds__(256) bounded(int *out) {
  __shared__ int tile[128];
  tile[threadIdx.x % 128] = 0;
  __syncthreads();
  out[threadIdx.x] = tile[0];
}
__global__ void dynamic(int *out) {
  extern __shared__ int tile[];
  tile[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = tile[31 - threadIdx.x];
}

int main() {
  int count, device, version, value;
  OK(cudaGetDeviceCount(&count));
  OK(cudaGetDevice(&device));
  OK(cudaRuntimeGetVersion(&version));
  CHECK(count == 1 && device == 0 && version >= 12000);
  OK(cudaSetDevice(0));
  CHECK(cudaSetDevice(1) == cudaErrorInvalidDevice);
  CHECK(cudaGetLastError() == cudaErrorInvalidDevice);
  cudaDeviceProp properties;
  OK(cudaGetDeviceProperties(&properties, 0));
  CHECK(properties.major == 9 && properties.minor == 0);
  CHECK(properties.multiProcessorCount == 132);
  CHECK(properties.sharedMemPerBlockOptin == 232448);
  CHECK(properties.clusterLaunch == 1 && properties.warpSize == 32);
  CHECK(properties.maxThreadsPerMultiProcessor == 2048);
  OK(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0));
  CHECK(value == 132);
  OK(cudaDeviceCanAccessPeer(&value, 0, 0));
  std::size_t free, total;
  OK(cudaMemGetInfo(&free, &total));
  CHECK(free <= total && total > (std::size_t(1) << 33));

  cudaFuncAttributes attributes;
  OK(cudaFuncGetAttributes(&attributes, bounded));
  CHECK(attributes.maxThreadsPerBlock == 256);
  CHECK(attributes.sharedSizeBytes == 512 && attributes.numRegs > 0);
  int blocks;
  OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, bounded, 256, 0));
  CHECK(blocks == 8);
  OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, dynamic, 32,
                                                   100 * 1024));
  CHECK(blocks == 2);

  // More shared memory than 48 KiB is asked for first.
  int *out;
  OK(cudaMalloc(&out, 1024));
  dynamic<<<1, 32, 64 * 1024>>>(out);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  OK(cudaFuncSetAttribute(dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize,
                          64 * 1024));
  dynamic<<<1, 32, 64 * 1024>>>(out);
  OK(cudaGetLastError());
  int back[32];
  OK(cudaMemcpy(back, out, sizeof(back), cudaMemcpyDeviceToHost));
  CHECK(back[0] == 31 && back[31] == 0);
  empty<<<1, 2048>>>();
  CHECK(cudaGetLastError() == cudaErrorInvalidConfiguration);
  empty<<<0, 32>>>();
  CHECK(cudaGetLastError() == cudaErrorInvalidConfiguration);
  bounded<<<1, 512>>>(out);
  CHECK(cudaGetLastError() == cudaErrorInvalidConfiguration);
  OK(cudaDeviceSynchronize());
  OK(cudaDeviceReset());
  std::printf("PASS\n");
  return 0;
}
