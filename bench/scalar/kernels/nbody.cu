// Accelerations of n bodies, tile by tile through shared memory; n is a
// multiple of the CTA's threads. Four floats per body: place and mass.
extern "C" __global__ void nbody(const float4 *bodies, float4 *accelerations,
                                 int n) {
  __shared__ float4 tile[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float4 own = bodies[i];
  float ax = 0, ay = 0, az = 0;
  for (int begin = 0; begin < n; begin += blockDim.x) {
    tile[threadIdx.x] = bodies[begin + threadIdx.x];
    __syncthreads();
    for (int j = 0; j < blockDim.x; ++j) {
      float4 other = tile[j];
      float dx = other.x - own.x, dy = other.y - own.y, dz = other.z - own.z;
      float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
      float force = other.w * inverse * inverse * inverse;
      ax += dx * force;
      ay += dy * force;
      az += dz * force;
    }
    __syncthreads();
  }
  accelerations[i] = make_float4(ax, ay, az, 0);
}
