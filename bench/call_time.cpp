// call_time: what gemm and attention in one call (kiln/kernels/call.h) cost the host,
// beside the driver's own launch of the same kernel, packed once.
//
//     bench_call_time [cuda]       prints microseconds per call; needs a GPU
//
// Problems are small, so that the GPU keeps up with the host.
#include <kiln/kiln.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

using namespace kiln;

static constexpr int kCalls = 300, kRounds = 15;

/// Microseconds of one of many calls; the device is idle before and after.
static double time_us(Device &device, const Stream &stream,
                      const std::function<void()> &call) {
  auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kCalls; ++i)
    call();
  double us = std::chrono::duration<double, std::micro>(
                  std::chrono::steady_clock::now() - start)
                  .count();
  device.synchronize(stream);
  return us / kCalls;
}

int main(int argc, char **argv) try {
  std::shared_ptr<Device> device = open_device(argc > 1 ? argv[1] : "cuda");
  Stream stream = device->create_stream();
  auto buffer = [&](std::size_t bytes) {
    Buffer made = device->allocate(bytes);
    device->fill(made, 0x3c);
    return made;
  };

  constexpr int kSize = 256;
  GemmProblem product{.m = kSize,
                      .n = kSize,
                      .k = kSize,
                      .type = Type::bf16,
                      .out = Type::bf16};
  GemmArguments matrices{.a = buffer(kSize * kSize * 2),
                         .b = buffer(kSize * kSize * 2),
                         .d = buffer(kSize * kSize * 2)};
  const DeviceDescription &description = device->description();
  Kernel kernel = compile(build_gemm(
      product, pick_schedule(product, description), {}, description));
  std::vector<LaunchArgument> arguments = {matrices.a, matrices.b, matrices.d};
  auto launch = device->prepare(resolve(kernel, arguments, description));

  AttentionProblem heads{.heads = 4, .queries = kSize, .keys = kSize};
  Buffer q = buffer(4 * kSize * 128 * 2);
  AttentionArguments tensors{.q = q,
                             .k = q,
                             .v = q,
                             .o = buffer(q.bytes()),
                             .lse = buffer(4 * kSize * 4)};

  struct Row {
    const char *name;
    std::function<void()> call;
    std::vector<double> us = {};
  };
  std::vector<Row> rows = {
      {"the driver's launch", [&] { launch(stream); }},
      {"gemm", [&] { gemm(device, stream, product, matrices); }},
      {"attention", [&] { attention(device, stream, heads, tensors); }}};
  for (int round = -1; round < kRounds; ++round) // one to warm up
    for (Row &row : rows)
      if (double us = time_us(*device, stream, row.call); round >= 0)
        row.us.push_back(us);
  for (Row &row : rows) {
    std::ranges::sort(row.us);
    std::printf("%-20s %6.2f us\n", row.name, row.us[row.us.size() / 2]);
  }
} catch (const std::exception &error) {
  std::fprintf(stderr, "bench_call_time: %s\n", error.what());
  return 4;
}
