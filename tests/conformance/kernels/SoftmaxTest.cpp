// Softmax: a kernel that is no GEMM, against float64.
#include "conformance/Conformance.h"

#include <kiln/measure/reference.h>
#include <kiln/kernels/softmax.h>
#include <kiln/run/run.h>

#include <algorithm>

#include <cmath>

using namespace conformance;

class Softmax : public OnDevice {};
INSTANTIATE_ON_DEVICES(Softmax);

/// The largest error relative to the row's largest result.
static double worst_error(Type type, const std::vector<std::uint8_t> &x,
                          const std::vector<std::uint8_t> &y, int rows,
                          int columns) {
  std::vector<double> in = values(type, x), out = values(type, y);
  double worst = 0;
  for (int r = 0; r < rows; ++r) {
    const double *row = &in[std::size_t(r) * columns];
    double largest = *std::max_element(row, row + columns), sum = 0;
    for (int c = 0; c < columns; ++c)
      sum += std::exp(row[c] - largest);
    for (int c = 0; c < columns; ++c) {
      double want = std::exp(row[c] - largest) / sum;
      double got = out[std::size_t(r) * columns + c];
      double error = std::abs(got - want) * sum;
      worst = std::isnan(error) ? INFINITY : std::max(worst, error);
    }
  }
  return worst;
}

/// Half a unit in the last place of a result of 1, and the approximations.
static double tolerance(Type type) {
  return type == bf16 ? 0x1p-8 : type == f16 ? 0x1p-11 : 0x1p-19;
}

static void check(const std::string &id, const SoftmaxProblem &problem,
                  int rows, unsigned seed) {
  Kernel kernel = compile_checked(build_softmax(problem));
  Device *device = conformance::open(id).device.get();
  if (!device)
    return;
  std::size_t count = std::size_t(rows) * problem.columns;
  std::vector<std::uint8_t> x(count * size_bytes(problem.type));
  fill_random(problem.type, x.data(), count, seed, -8, 8);
  auto y = poisoned(problem.type, count);
  std::vector<HostArgument> arguments = {x, y};
  if (!problem.rows.is_constant())
    arguments.push_back(rows);
  LaunchResult result =
      try_run(*device, kernel, std::span<const HostArgument>(arguments));
  EXPECT_TRUE(result.findings.empty())
      << result.findings.front().id << ": " << result.findings.front().message;
  EXPECT_LE(worst_error(problem.type, x, y, rows, problem.columns),
            tolerance(problem.type))
      << rows << " x " << problem.columns << " of " << name(problem.type);
}

TEST_P(Softmax, EveryTypeAndWidth) {
  for (Type type : {bf16, f16, f32})
    for (int columns : {8, 256, 264, 1000, 4096})
      check(GetParam(), {.rows = 9, .columns = columns, .type = type}, 9,
            columns);
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Softmax, RowsAtLaunch) {
  for (int rows : {1, 3, 4, 50})
    check(GetParam(), {.rows = Dim::argument("rows"), .columns = 512}, rows,
          rows);
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Softmax, MoreRowsThanSlots) {
  int rows = GetParam() == "sim" ? 1200 : 8192;
  int columns = GetParam() == "sim" ? 256 : 4096;
  check(GetParam(), {.rows = rows, .columns = columns}, rows, 7);
  SKIP_WITHOUT_DEVICE();
}
