// One kind of instruction after another, so that the loop around them is lost.
#include <utility>

constexpr int kRepeat = 64;
using Numbers = std::make_integer_sequence<int, kRepeat>;

extern "C" __global__ void arithmetic(float *out, int rounds) {
  float a = threadIdx.x, b = a + 1, c = a + 2, d = a + 3;
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int i = 0; i < kRepeat / 4; ++i) {
      a = a * 0.5f + b;
      b = b * 0.5f + c;
      c = c * 0.5f + d;
      d = d * 0.5f + a;
    }
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = a + b + c + d;
}

extern "C" __global__ void integers(int *out, int rounds) {
  int a = threadIdx.x, b = a + 1;
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int i = 0; i < kRepeat / 4; ++i) {
      a = (a + b) ^ i;
      b = (b << 1) - a;
    }
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = a + b;
}

template <int I>
static __device__ float load(const float *from) {
  float value;
  asm volatile("ld.global.f32 %0, [%1+%2];"
               : "=f"(value)
               : "l"(from), "n"(I * 128));
  return value;
}

template <int I>
static __device__ float loadShared(unsigned from) {
  float value;
  asm volatile("ld.shared.f32 %0, [%1+%2];"
               : "=f"(value)
               : "r"(from), "n"(I * 128));
  return value;
}

template <int I>
static __device__ void store(float *to) {
  asm volatile("st.global.f32 [%0+%1], %2;" : : "l"(to), "n"(I * 128), "f"(1.0f));
}

template <int... I>
static __device__ void loads(const float *from, float *out, int rounds,
                             std::integer_sequence<int, I...>) {
  float value;
  for (int round = 0; round < rounds; ++round)
    ((value = load<I>(from)), ...);
  out[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

extern "C" __global__ void loads_broadcast(const float *in, float *out,
                                           int rounds) {
  loads(in, out, rounds, Numbers());
}

extern "C" __global__ void loads_coalesced(const float *in, float *out,
                                           int rounds) {
  loads(in + threadIdx.x, out, rounds, Numbers());
}

template <int... I>
static __device__ void stores(float *to, int rounds,
                              std::integer_sequence<int, I...>) {
  for (int round = 0; round < rounds; ++round)
    (store<I>(to), ...);
}

extern "C" __global__ void stores_coalesced(float *out, int rounds) {
  stores(out + blockIdx.x * 32 * kRepeat + threadIdx.x, rounds, Numbers());
}

template <int... I>
static __device__ float sharedLoads(unsigned from, int rounds,
                                    std::integer_sequence<int, I...>) {
  float value;
  for (int round = 0; round < rounds; ++round)
    ((value = loadShared<I>(from)), ...);
  return value;
}

extern "C" __global__ void loads_shared(float *out, int rounds) {
  __shared__ float words[32 * kRepeat];
  for (int i = threadIdx.x; i < 32 * kRepeat; i += 32)
    words[i] = i;
  __syncwarp();
  auto from =
      static_cast<unsigned>(__cvta_generic_to_shared(words + threadIdx.x));
  out[blockIdx.x * blockDim.x + threadIdx.x] =
      sharedLoads(from, rounds, Numbers());
}
