// A matrix in compressed rows times a vector, one row per thread.
extern "C" __global__ void spmv(const int *begins, const int *columns,
                                const float *values, const float *x, float *y,
                                int rows) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows)
    return;
  float sum = 0;
  for (int i = begins[row]; i < begins[row + 1]; ++i)
    sum += values[i] * x[columns[i]];
  y[row] = sum;
}
