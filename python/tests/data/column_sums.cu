// column_sums: y[j] is the sum of column j of x, which has 64 rows of n. Two
// lines are missing; make_ptx compiles it without them and with them.
extern "C" __global__ void column_sums(float *y, const float *x, int n) {
  __shared__ float part[8][32];
  int j = blockIdx.x * 32 + threadIdx.x;
  float sum = 0;
#ifdef MENDED
  if (j < n)
#endif
    for (int i = threadIdx.y; i < 64; i += 8)
      sum += x[i * n + j];
  part[threadIdx.y][threadIdx.x] = sum;
#ifdef MENDED
  __syncthreads();
#endif
  if (threadIdx.y == 0 && j < n) {
    for (int i = 1; i < 8; ++i)
      sum += part[i][threadIdx.x];
    y[j] = sum;
  }
}
