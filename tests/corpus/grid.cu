// Threads that leave early, blocks that wait for all others, and memory that
// kernels allocate.
#include <cooperative_groups.h>
#include <cstdlib>

/// Threads behind the end leave before the barrier of the others.
extern "C" __global__ void reversed(int *out, const int *in, int count) {
  __shared__ int tile[512];
  int i = threadIdx.x;
  if (i >= count)
    return;
  tile[i] = in[i];
  __syncthreads();
  out[i] = tile[count - 1 - i];
}

/// Every block leaves a number; after grid.sync() all are there.
extern "C" __global__ void grid_sums(int *numbers, int *sums) {
  auto grid = cooperative_groups::this_grid();
  if (threadIdx.x == 0)
    numbers[blockIdx.x] = blockIdx.x + 1;
  grid.sync();
  int sum = 0;
  for (int i = 0; i < gridDim.x; ++i)
    sum += numbers[i];
  grid.sync();
  if (threadIdx.x == 0)
    sums[blockIdx.x] = sum;
}

/// The last block sets the counter back with a plain store.
extern "C" __global__ void counted(unsigned *counter, int *last) {
  if (threadIdx.x == 0) {
    __threadfence();
    unsigned before = atomicAdd(counter, 1);
    if (before == gridDim.x - 1) {
      __threadfence();
      *counter = 0;
      *last = blockIdx.x;
    }
  }
}

/// A list of each thread's own.
extern "C" __global__ void lists(int *out, int length) {
  struct Node {
    int value;
    Node *next;
  };
  Node *head = nullptr;
  for (int i = 0; i < length; ++i) {
    Node *node = static_cast<Node *>(malloc(sizeof(Node)));
    if (!node)
      break;
    node->value = i * threadIdx.x;
    node->next = head;
    head = node;
  }
  int sum = 0;
  while (head) {
    Node *next = head->next;
    sum += head->value;
    free(head);
    head = next;
  }
  out[threadIdx.x] = sum;
}

/// It is read after it was given back.
extern "C" __global__ void used_after_free(int *out) {
  int *one = static_cast<int *>(malloc(16));
  one[0] = 7;
  free(one);
  out[0] = *static_cast<volatile int *>(one);
}

/// It is given back twice.
extern "C" __global__ void freed_twice(int *out) {
  void *one = malloc(16);
  free(one);
  free(one);
  out[0] = 1;
}
