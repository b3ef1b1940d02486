// scale: the kernel of the fat binaries beside this file; make_fatbins makes
// them again.
__constant__ float factors[4];
__device__ int counter;

extern "C" __global__ void scale(float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    x[i] *= factors[1];
  if (i == 0)
    counter = n;
}
