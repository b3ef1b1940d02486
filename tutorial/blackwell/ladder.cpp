// ladder: what the launchers share.
#include "ladder.h"

#include <kiln/run/run.h>

#include <cstdio>
#include <vector>

using namespace kiln;

namespace ladder {

/// The first GPU where it runs the kernel, else the simulator as a B200.
static std::shared_ptr<Device> open_for(const Kernel &kernel) {
  try {
    auto device = open_cuda();
    if (device->description().runs(kernel.target))
      return device;
  } catch (const RuntimeError &) {
  }
  return open_sim({.device = DeviceDescription::to_simulate(kernel.target)});
}

int launch(const Module &module, const Shape &shape) try {
  Kernel kernel = compile(module);
  auto device = open_for(kernel);
  std::printf("%s on %s: %d threads, %d bytes of shared memory.\n",
              kernel.name.c_str(), device->name().c_str(),
              kernel.contract.threads(), kernel.contract.dynamic_smem_bytes);
  std::size_t m = shape.m, n = shape.n, k = shape.k;
  std::vector<std::uint16_t> a(m * k), b(n * k), d(m * n, 0xffff);
  fill_normal(f16, a.data(), a.size(), 1);
  fill_normal(f16, b.data(), b.size(), 2);
  LaunchResult result = run(*device, kernel, a, b, d);
  for (const Finding &finding : result.findings)
    std::printf("%s\n", finding.to_string().c_str());
  if (!result.ok())
    return static_cast<int>(ExitStatus::finding);
  Comparison comparison = compare_gemm({.m = shape.m,
                                        .n = shape.n,
                                        .k = shape.k,
                                        .out = f16,
                                        .a = a.data(),
                                        .b = b.data()},
                                       d.data());
  for (const Mismatch &wrong : comparison.first)
    std::printf("d[%lld, %lld] is %g and should be %g\n",
                static_cast<long long>(wrong.row),
                static_cast<long long>(wrong.col), wrong.got, wrong.want);
  if (!comparison.ok)
    return static_cast<int>(ExitStatus::wrong);
  std::printf("PASS: %dx%dx%d, relative error at most %.1e.\n", shape.m,
              shape.n, shape.k, comparison.max_rel_err);
  return 0;
} catch (const Error &error) {
  std::fprintf(stderr, "%s\n", error.what());
  return static_cast<int>(error.exit_status());
}

} // namespace ladder
