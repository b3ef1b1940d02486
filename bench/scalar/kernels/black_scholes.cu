// Prices of European options, one per thread.
static __device__ float normal(float d) {
  float k = 1.0f / (1.0f + 0.2316419f * fabsf(d));
  float tail =
      0.39894228f * expf(-0.5f * d * d) *
      (k * (0.31938153f +
            k * (-0.356563782f +
                 k * (1.781477937f +
                      k * (-1.821255978f + k * 1.330274429f)))));
  return d > 0 ? 1.0f - tail : tail;
}

extern "C" __global__ void black_scholes(const float *prices,
                                         const float *strikes,
                                         const float *years, float *calls,
                                         float *puts, float rate,
                                         float volatility, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float s = prices[i], x = strikes[i], t = years[i];
  float root = sqrtf(t);
  float d1 = (logf(s / x) + (rate + 0.5f * volatility * volatility) * t) /
             (volatility * root);
  float d2 = d1 - volatility * root;
  float discount = expf(-rate * t);
  calls[i] = s * normal(d1) - x * discount * normal(d2);
  puts[i] = x * discount * (1.0f - normal(d2)) - s * (1.0f - normal(d1));
}
