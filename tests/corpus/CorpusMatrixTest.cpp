// CorpusMatrix: products by mma.sync, by wgmma in the manner of CUTLASS, by
// MLIR's nvgpu dialect and by Triton, and Triton's softmax.
#include "corpus/RunCorpus.h"
#include "sim/machine/memory/TensorMapImage.h"
#include "support/Half.h"

#include <cmath>

namespace kiln {

namespace {
/// A[m][k] and B as halves, and their product in double.
struct Problem {
  int m, n, k;
  bool isBByRows; ///< B[k][n], else B[n][k]
  std::vector<std::uint16_t> a, b;
  std::vector<double> c;

  Problem(int m, int n, int k, bool isBByRows)
      : m(m), n(n), k(k), isBByRows(isBByRows), c(m * n) {
    for (auto [matrix, count] : {std::pair(&a, m * k), std::pair(&b, k * n)})
      for (float value : randomNumbers<float>(count, -1, 1))
        matrix->push_back(floatToHalf(value));
    for (int row = 0; row < m; ++row)
      for (int column = 0; column < n; ++column)
        for (int i = 0; i < k; ++i)
          c[row * n + column] +=
              double(halfToFloat(a[row * k + i])) *
              halfToFloat(b[isBByRows ? i * n + column : column * k + i]);
  }

  /// Products of halves are exact; the sum loses a little at every step.
  double tolerance() const { return 1e-6 * k * std::sqrt(k); }

  void check(const std::vector<float> &out) const {
    for (int i = 0; i < m * n; ++i)
      ASSERT_NEAR(out[i], c[i], tolerance())
          << "row " << i / n << " column " << i % n;
  }
};
} // namespace

static TensorMap mapOf(const Buffer &buffer, int rows, int columns) {
  return {.type = Type::f16,
          .address = buffer.address(),
          .dims = {std::uint64_t(columns), std::uint64_t(rows)},
          .strides_bytes = {std::uint64_t(columns) * 2},
          .box = {64, 64},
          .element_strides = {1, 1},
          .swizzle = Swizzle::b128};
}

TEST(CorpusMatrix, MultipliesByMma) {
  for (Interleaving order : kSimOrders) {
    RunCorpus run("mma_gemm.ptx", order);
    Problem problem(128, 64, 96, false);
    Buffer to = run.empty<float>(128 * 64);
    run.run("mma_gemm", {1, 2, 1}, {128, 1, 1}, 0, run.buffer(problem.a),
            run.buffer(problem.b), to, problem.n, problem.k);
    problem.check(run.read<float>(to, 128 * 64));
  }
}

TEST(CorpusMatrix, MultipliesByWgmma) {
  for (Interleaving order : kSimOrders) {
    RunCorpus run("hopper_gemm.ptx", order);
    Problem problem(128, 128, 384, false);
    Buffer a = run.buffer(problem.a), b = run.buffer(problem.b);
    Buffer to = run.empty<float>(128 * 128);
    run.run("hopper_gemm", {2, 2, 1}, {256, 1, 1}, 65536,
            mapOf(a, problem.m, problem.k), mapOf(b, problem.n, problem.k), to,
            problem.n, problem.k);
    problem.check(run.read<float>(to, 128 * 128));
  }
}

/// Its kernel takes pointers to tensor maps, and a memref piece by piece.
TEST(CorpusMatrix, MultipliesByNvgpu) {
  for (Interleaving order : kSimOrders) {
    RunCorpus run("nvgpu_gemm.ptx", order);
    run.known = {"mbarrier-init-fence-barrier"};
    Problem problem(128, 64, 192, true);
    Buffer a = run.buffer(problem.a), b = run.buffer(problem.b);
    auto image = [&](const TensorMap &map) {
      auto bytes = sim::encode(map);
      return run.buffer(std::vector<std::uint8_t>(bytes.begin(), bytes.end()));
    };
    Buffer to = run.empty<float>(128 * 64);
    std::int64_t k = problem.k, m = problem.m, n = problem.n, zero = 0, one = 1,
                 tile = 64;
    run.run("nvgpu_gemm_kernel", {1, 2, 1}, {128, 1, 1}, 0, zero, tile, zero,
            one, image(mapOf(a, problem.m, problem.k)),
            image(mapOf(b, problem.k, problem.n)), k, tile, to, to, zero, m, n,
            n, one);
    problem.check(run.read<float>(to, 128 * 64));
  }
}

TEST(CorpusMatrix, MultipliesByTriton) {
  for (Interleaving order : kSimOrders) {
    RunCorpus run("triton_matmul.ptx", order);
    Problem problem(96, 80, 112, true);
    Buffer to = run.empty<std::uint16_t>(96 * 80);
    Buffer none = run.empty<std::uint64_t>(1);
    run.run("matmul", {2, 2, 1}, {128, 1, 1}, 24576, run.buffer(problem.a),
            run.buffer(problem.b), to, problem.m, problem.n, problem.k, none,
            none);
    auto out = run.read<std::uint16_t>(to, 96 * 80);
    for (int i = 0; i < 96 * 80; ++i)
      ASSERT_NEAR(halfToFloat(out[i]), problem.c[i],
                  1e-3 * std::fabs(problem.c[i]) + 1e-3)
          << "row " << i / 80 << " column " << i % 80;
  }
}

TEST(CorpusMatrix, TritonsSoftmax) {
  constexpr int kRows = 5, kColumns = 200;
  RunCorpus run("triton_softmax.ptx", Interleaving::random);
  auto in = randomNumbers<float>(kRows * kColumns, -5, 5);
  Buffer from = run.buffer(in), to = run.empty<float>(kRows * kColumns);
  Buffer none = run.empty<std::uint64_t>(1);
  run.run("softmax", {kRows, 1, 1}, {128, 1, 1}, 16, to, from, kColumns,
          kColumns, none, none);
  auto out = run.read<float>(to, kRows * kColumns);
  for (int row = 0; row < kRows; ++row) {
    double sum = 0;
    for (int i = 0; i < kColumns; ++i)
      sum += std::exp(double(in[row * kColumns + i]));
    for (int i = 0; i < kColumns; ++i)
      ASSERT_NEAR(out[row * kColumns + i],
                  std::exp(double(in[row * kColumns + i])) / sum, 1e-6);
  }
}

} // namespace kiln
