// One level of a breadth-first search: neighbours of the frontier that nobody
// has reached get the next level and a place in the next frontier.
extern "C" __global__ void bfs_step(const int *begins, const int *edges,
                                    const int *frontier, int size, int *levels,
                                    int *next, int *nextSize, int level) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= size)
    return;
  int node = frontier[i];
  for (int edge = begins[node]; edge < begins[node + 1]; ++edge) {
    int other = edges[edge];
    if (atomicCAS(&levels[other], -1, level) == -1)
      next[atomicAdd(nextSize, 1)] = other;
  }
}
