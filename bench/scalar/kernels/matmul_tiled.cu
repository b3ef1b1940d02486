// Tiles of 16 x 16 in shared memory; n is a multiple of 16.
extern "C" __global__ void matmul_tiled(const float *a, const float *b,
                                        float *c, int n) {
  constexpr int kTile = 16;
  __shared__ float tileA[kTile][kTile], tileB[kTile][kTile];
  int x = threadIdx.x, y = threadIdx.y;
  int row = blockIdx.y * kTile + y, column = blockIdx.x * kTile + x;
  float sum = 0;
  for (int begin = 0; begin < n; begin += kTile) {
    tileA[y][x] = a[row * n + begin + x];
    tileB[y][x] = b[(begin + y) * n + column];
    __syncthreads();
    for (int k = 0; k < kTile; ++k)
      sum += tileA[y][k] * tileB[k][x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}
