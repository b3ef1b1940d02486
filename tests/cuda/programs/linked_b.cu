// linked_b: the other half of linked_a.
__device__ int calls;
static __device__ int own = 2;

__device__ int twice(int x) { return 2 * x; }
__global__ void other(int *out) {
  *out = twice(own);
  ++calls;
}
void run_other(int *out) { other<<<1, 1>>>(out); }
