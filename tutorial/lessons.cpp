// lessons: what the launchers of the lessons share.
#include "lessons.h"

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

} // namespace lessons
