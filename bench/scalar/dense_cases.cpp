// dense_cases: kernels whose threads each compute elements of dense arrays.
#include "case.h"

#include <cmath>

namespace scalar {

using Result = Array::Result;

static Case vector_add() {
  constexpr int kCount = 1 << 20;
  return {.name = "vector_add",
          .file = "vector_add",
          .grid = {kCount / 256, 1, 1},
          .block = {256, 1, 1},
          .parameters = {random_floats(kCount, 1, -1, 1),
                         random_floats(kCount, 2, -1, 1),
                         zeros(kCount, Result::words), kCount},
          .on_host = [](Case &c) {
            const float *a = c.array(0).floats(), *b = c.array(1).floats();
            float *sum = c.array(2).floats();
            for (int i = 0, n = c.whole(3); i < n; ++i)
              sum[i] = a[i] + b[i];
          }};
}

/// A row of C at a time, so that the compiler can use vectors.
static void multiply(Case &c) {
  int n = c.whole(3);
  for (int row = 0; row < n; ++row) {
    float *to = c.array(2).floats() + row * n;
    for (int k = 0; k < n; ++k) {
      float a = c.array(0).floats()[row * n + k];
      const float *b = c.array(1).floats() + k * n;
      for (int column = 0; column < n; ++column)
        to[column] += a * b[column];
    }
  }
}

static Case product(const char *name) {
  constexpr int kSize = 256, kElements = kSize * kSize;
  return {.name = name,
          .file = name,
          .grid = {kSize / 16, kSize / 16, 1},
          .block = {16, 16, 1},
          .parameters = {random_floats(kElements, 1, -1, 1),
                         random_floats(kElements, 2, -1, 1),
                         zeros(kElements, Result::floats, 1e-4f), kSize},
          .on_host = multiply,
          .iterations = double(kElements) * kSize};
}

static Case stencil() {
  constexpr int kWidth = 1024, kHeight = 768;
  return {.name = "stencil",
          .file = "stencil",
          .grid = {kWidth / 32, kHeight / 8, 1},
          .block = {32, 8, 1},
          .parameters = {random_floats(kWidth * kHeight, 1, -1, 1),
                         zeros(kWidth * kHeight, Result::floats, 1e-5f), kWidth,
                         kHeight},
          .on_host = [](Case &c) {
            int width = c.whole(2), height = c.whole(3);
            const float *in = c.array(0).floats();
            float *out = c.array(1).floats();
            for (int y = 0; y < height; ++y)
              for (int x = 0; x < width; ++x) {
                int i = y * width + x;
                bool is_edge =
                    x == 0 || y == 0 || x == width - 1 || y == height - 1;
                out[i] = is_edge ? in[i]
                                 : 0.5f * in[i] +
                                       0.125f * (in[i - 1] + in[i + 1] +
                                                 in[i - width] + in[i + width]);
              }
          }};
}

static Case nbody() {
  constexpr int kBodies = 2048;
  return {.name = "nbody",
          .file = "nbody",
          .grid = {kBodies / 256, 1, 1},
          .block = {256, 1, 1},
          .parameters = {random_floats(std::size_t(4) * kBodies, 1, 0.1, 1),
                         zeros(std::size_t(4) * kBodies, Result::floats, 1e-3f),
                         kBodies},
          .on_host = [](Case &c) {
            const float *bodies = c.array(0).floats();
            int n = c.whole(2);
            for (int i = 0; i < n; ++i) {
              const float *own = bodies + std::ptrdiff_t(4) * i;
              float ax = 0, ay = 0, az = 0;
              for (int j = 0; j < n; ++j) {
                const float *other = bodies + std::ptrdiff_t(4) * j;
                float dx = other[0] - own[0], dy = other[1] - own[1],
                      dz = other[2] - own[2];
                float inverse =
                    1 / std::sqrt(dx * dx + dy * dy + dz * dz + 0.01f);
                float force = other[3] * inverse * inverse * inverse;
                ax += dx * force;
                ay += dy * force;
                az += dz * force;
              }
              float *to = c.array(1).floats() + std::ptrdiff_t(4) * i;
              to[0] = ax;
              to[1] = ay;
              to[2] = az;
            }
          }};
}

static float normal(float d) {
  float k = 1.0f / (1.0f + 0.2316419f * std::fabs(d));
  float tail =
      0.39894228f * std::exp(-0.5f * d * d) *
      (k * (0.31938153f +
            k * (-0.356563782f +
                 k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f)))));
  return d > 0 ? 1.0f - tail : tail;
}

static Case black_scholes() {
  constexpr int kCount = 1 << 18;
  return {
      .name = "black_scholes",
      .file = "black_scholes",
      .grid = {kCount / 128, 1, 1},
      .block = {128, 1, 1},
      .parameters = {random_floats(kCount, 1, 5, 30),
                     random_floats(kCount, 2, 1, 100),
                     random_floats(kCount, 3, 0.25, 10),
                     zeros(kCount, Result::floats, 1e-4f),
                     zeros(kCount, Result::floats, 1e-4f), 0.02f, 0.3f, kCount},
      .on_host = [](Case &c) {
        float rate = c.real(5), volatility = c.real(6);
        for (int i = 0, n = c.whole(7); i < n; ++i) {
          float s = c.array(0).floats()[i], x = c.array(1).floats()[i],
                t = c.array(2).floats()[i];
          float root = std::sqrt(t);
          float d1 =
              (std::log(s / x) + (rate + 0.5f * volatility * volatility) * t) /
              (volatility * root);
          float d2 = d1 - volatility * root;
          float discount = std::exp(-rate * t);
          c.array(3).floats()[i] = s * normal(d1) - x * discount * normal(d2);
          c.array(4).floats()[i] =
              x * discount * (1.0f - normal(d2)) - s * (1.0f - normal(d1));
        }
      }};
}

std::vector<Case> dense_cases() {
  return {
      vector_add(), product("matmul_naive"), product("matmul_tiled"), stencil(),
      nbody(),      black_scholes()};
}

} // namespace scalar
