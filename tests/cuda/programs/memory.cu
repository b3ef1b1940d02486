// memory: memory in all its forms, copies, sets and symbols.
// status: 0
#include "check.h"

#include <cstring>
#include <vector>

__constant__ float factors[4];
__device__ int counter;
__managed__ int shared_number = 5;

__global__ void scale(float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    x[i] = x[i] * factors[1] + shared_number;
  if (i == 0)
    counter = n;
}

int main() {
  const int n = 100;
  std::vector<float> host(n);
  for (int i = 0; i < n; ++i)
    host[i] = i;
  float *x;
  OK(cudaMalloc(&x, n * sizeof(float)));
  OK(cudaMemcpy(x, host.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  float values[4] = {1, 2, 3, 4};
  OK(cudaMemcpyToSymbol(factors, values, sizeof(values)));
  shared_number = 3;
  scale<<<4, 32>>>(x, n);
  OK(cudaGetLastError());
  OK(cudaDeviceSynchronize());
  OK(cudaMemcpy(host.data(), x, n * sizeof(float), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; ++i)
    CHECK(host[i] == i * 2 + 3);
  int seen = 0;
  OK(cudaMemcpyFromSymbol(&seen, counter, sizeof(int)));
  CHECK(seen == n);
  void *address;
  std::size_t bytes;
  OK(cudaGetSymbolAddress(&address, factors));
  OK(cudaGetSymbolSize(&bytes, factors));
  CHECK(bytes == 16);
  float third;
  OK(cudaMemcpy(&third, static_cast<float *>(address) + 2, 4,
                cudaMemcpyDefault));
  CHECK(third == 3);

  // Managed, pinned and registered memory at one address.
  float *managed, *pinned;
  OK(cudaMallocManaged(&managed, n * sizeof(float)));
  OK(cudaMallocHost(&pinned, n * sizeof(float)));
  // It is zero, as the system gives it.
  CHECK(managed[0] == 0 && managed[n - 1] == 0 && pinned[n - 1] == 0);
  std::vector<float> heap(n, 7);
  OK(cudaHostRegister(heap.data(), n * sizeof(float), cudaHostRegisterMapped));
  for (int i = 0; i < n; ++i)
    managed[i] = pinned[i] = i;
  scale<<<4, 32>>>(managed, n);
  scale<<<4, 32>>>(pinned, n);
  float *mapped;
  OK(cudaHostGetDevicePointer(&mapped, heap.data(), 0));
  scale<<<4, 32>>>(mapped, n);
  OK(cudaDeviceSynchronize());
  CHECK(managed[9] == 21 && pinned[9] == 21 && heap[9] == 17);
  cudaPointerAttributes attributes;
  OK(cudaPointerGetAttributes(&attributes, managed));
  CHECK(attributes.type == cudaMemoryTypeManaged);
  OK(cudaPointerGetAttributes(&attributes, x));
  CHECK(attributes.type == cudaMemoryTypeDevice);
  OK(cudaPointerGetAttributes(&attributes, &seen));
  CHECK(attributes.type == cudaMemoryTypeUnregistered);
  OK(cudaHostUnregister(heap.data()));

  // Rows.
  std::size_t pitch;
  char *rows;
  OK(cudaMallocPitch(&rows, &pitch, 10, 3));
  OK(cudaMemset2D(rows, pitch, 9, 10, 3));
  char back[30];
  OK(cudaMemcpy2D(back, 10, rows, pitch, 10, 3, cudaMemcpyDeviceToHost));
  for (char byte : back)
    CHECK(byte == 9);
  OK(cudaMemset(x, 0, n * sizeof(float)));
  OK(cudaMemcpy(managed, x, n * sizeof(float), cudaMemcpyDeviceToDevice));
  CHECK(managed[9] == 0);
  void *pool;
  OK(cudaMallocAsync(&pool, 64, 0));
  OK(cudaFreeAsync(pool, 0));

  // What is wrong is refused, and forgotten when asked for.
  CHECK(cudaMemcpy(host.data(), x, 4, cudaMemcpyHostToDevice) != cudaSuccess);
  CHECK(cudaGetLastError() != cudaSuccess);
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK(cudaFree(host.data()) == cudaErrorInvalidValue);
  cudaGetLastError();
  OK(cudaFree(x));
  OK(cudaFree(managed));
  OK(cudaFreeHost(pinned));
  OK(cudaFree(nullptr));
  std::printf("PASS\n");
  return 0;
}
