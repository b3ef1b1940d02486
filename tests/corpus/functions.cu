// Functions: calls by name and by pointer, structures as parameters, recursion
// with local arrays.
#include <cuda_runtime.h>

struct Range {
  int first, last;
  double scale;
};

__device__ __noinline__ Range widen(Range range, int by) {
  return {range.first - by, range.last + by, range.scale * by};
}

__device__ __noinline__ int add(int a, int b) { return a + b; }
__device__ __noinline__ int subtract(int a, int b) { return a - b; }
__device__ __noinline__ int multiply(int a, int b) { return a * b; }
__device__ __noinline__ int largest(int a, int b) { return a > b ? a : b; }

using Operation = int (*)(int, int);
__device__ const Operation operations[4] = {add, subtract, multiply, largest};

extern "C" __global__ void by_name(const int *in, int *out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  Range range = widen({in[i], in[i] + 10, 0.5}, i % 7 + 1);
  out[i] = multiply(range.last, range.first) + (int)(range.scale * 2);
}

extern "C" __global__ void by_pointer(const int *a, const int *b,
                                      const int *which, int *out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = operations[which[i]](a[i], b[i]);
}

/// The n-th of a sequence that needs all before it twice.
__device__ __noinline__ int sequence(int n, int *calls) {
  int local[2] = {n, n + 1};
  ++*calls;
  if (n < 2)
    return local[n];
  int left = sequence(n - 1, calls);
  int right = sequence(n - 2, calls);
  return left + right + local[n & 1];
}

extern "C" __global__ void recursion(const int *in, int *out) {
  int i = threadIdx.x, calls = 0;
  out[2 * i] = sequence(in[i], &calls);
  out[2 * i + 1] = calls;
}
