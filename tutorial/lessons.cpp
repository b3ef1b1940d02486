// lessons: what the launchers of the lessons share.
#include "lessons.h"

#include <kiln/kernels/attention.h>
#include <kiln/measure/reference.h>
#include <kiln/run/open_device.h>
#include <kiln/run/run.h>

#include <algorithm>
#include <cmath>
#include <vector>

using namespace kiln;

namespace lessons {

std::shared_ptr<Device> open_device() {
  auto device = kiln::open_device("auto", {.timeline = true});
  std::printf("Running on %s.\n", device->name().c_str());
  return device;
}

bool is_simulator(const Device &device) {
  return device.kind() == DeviceKind::sim;
}

bool is_clean(const LaunchResult &result) {
  for (const Finding &finding : result.findings)
    std::printf("%s:%u: %s\n", finding.where.file.c_str(), finding.where.line,
                finding.message.c_str());
  return result.ok();
}

void describe(const Kernel &kernel) {
  std::printf("Compiled %s for %s: %d threads per CTA, %d bytes of shared "
              "memory, %zu bytes of PTX.\n",
              kernel.name.c_str(), kernel.target.c_str(),
              kernel.contract.threads(), kernel.contract.dynamic_smem_bytes,
              kernel.ptx.size());
}

/// A matrix of normally distributed numbers, on the host and on the device.
struct Matrix {
  std::vector<std::uint8_t> bytes;
  Buffer buffer;

  Matrix(Device &device, Type type, std::size_t count, unsigned seed)
      : bytes(count * size_bytes(type)), buffer(device.allocate(bytes.size())) {
    fill_normal(type, bytes.data(), count, seed);
    device.copy_in(buffer, bytes.data(), bytes.size());
  }
};

/// Microseconds of a launch: the mean of many, after a few to warm up.
static double measure_us(Device &device, const Kernel &kernel,
                         std::span<const LaunchArgument> arguments) {
  const int warm_up = 5, launches = 50;
  Event begin = device.create_event(), end = device.create_event();
  for (int i = 0; i < warm_up + launches; ++i) {
    if (i == warm_up)
      device.record(begin);
    device.enqueue(kernel, arguments);
  }
  device.record(end);
  return device.elapsed_us(begin, end) / launches;
}

int launch_gemm(Device &device, const Kernel &kernel, const GemmShape &shape,
                const GemmOperands &operands) {
  std::size_t m = shape.m, n = shape.n, k = shape.k;
  Matrix a(device, f16, m * k, 1), b(device, f16, k * n, 2);
  Matrix c(device, f32, m * n, 3), d(device, f32, m * n, 4);
  std::vector<LaunchArgument> arguments = {a.buffer, b.buffer};
  if (operands.has_c)
    arguments.push_back(c.buffer);
  arguments.push_back(d.buffer);
  LaunchResult result = device.launch(kernel, arguments);
  if (is_simulator(device))
    std::printf("%s", result.timeline.to_table().c_str());
  if (!is_clean(result))
    return static_cast<int>(ExitStatus::finding);

  device.copy_out(d.bytes.data(), d.buffer, d.bytes.size());
  ReferenceGemm reference{.m = shape.m, .n = shape.n, .k = shape.k};
  reference.b_row_major = !operands.is_b_transposed;
  reference.beta = operands.has_c ? 1 : 0;
  reference.a = a.bytes.data(), reference.b = b.bytes.data();
  reference.c = c.bytes.data();
  Comparison comparison = compare_gemm(reference, d.bytes.data());
  for (const Mismatch &wrong : comparison.first)
    std::printf("d[%lld, %lld] is %g and should be %g\n",
                static_cast<long long>(wrong.row),
                static_cast<long long>(wrong.col), wrong.got, wrong.want);
  if (!comparison.ok)
    return static_cast<int>(ExitStatus::wrong);
  std::printf("PASS: %dx%dx%d, relative error at most %.1e.\n", shape.m,
              shape.n, shape.k, comparison.max_rel_err);
  if (is_simulator(device))
    return 0;
  double time_us = measure_us(device, kernel, arguments);
  std::printf("%.1f us, %.0f TFLOP/s\n", time_us,
              2e-6 * shape.m * shape.n * shape.k / time_us);
  return 0;
}

int launch_attention(Device &device, const Kernel &kernel,
                     const AttentionShape &shape) {
  AttentionProblem problem{.heads = shape.heads,
                           .queries = shape.queries,
                           .keys = shape.keys,
                           .head_dim = 64,
                           .type = f16};
  std::size_t rows = std::size_t(shape.heads) * shape.queries;
  std::size_t keys = std::size_t(shape.heads) * shape.keys;
  std::vector<std::uint16_t> q(rows * 64), k(keys * 64), v(keys * 64), o = q;
  fill_normal(f16, q.data(), q.size(), 1);
  fill_normal(f16, k.data(), k.size(), 2);
  fill_normal(f16, v.data(), v.size(), 3);
  LaunchResult result = run(device, kernel, q, k, v, o);
  if (result.time_us > 0 && !is_simulator(device))
    std::printf("%.1f us, %.0f TFLOP/s\n", result.time_us,
                problem.operations() / result.time_us * 1e-6);
  double worst = 0;
  for (std::size_t row = 0; row < rows; row += 1 + rows / 50) {
    AttentionRow want =
        reference_attention(problem, q.data(), k.data(), v.data(), row);
    for (int i = 0; i < 64; ++i)
      worst = std::max(worst,
                       std::abs(from_bits(f16, o[row * 64 + i]) - want.o[i]) /
                           want.magnitude[i]);
  }
  std::printf("the largest error is %.1e of the terms' magnitudes\n", worst);
  return worst < 0x1p-9 ? 0 : 1;
}

} // namespace lessons
