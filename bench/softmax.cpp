// softmax: row softmax beside a plain copy of the same bytes, on the GPU.
//
//     build/bin/bench_softmax [ROWS COLUMNS] > FILE.json
//
// Both are launched in turns over buffers larger than twice the L2 cache, so
// that neither finds its data there. What counts is the ratio: a softmax that
// reads once and writes once can be as fast as a copy.
#include <kiln/kiln.h>
#include <kiln/kernels/softmax.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

using namespace kiln;

/// Each thread copies 16 bytes at a time, a whole grid apart.
static Module build_copy(std::int64_t words) {
  KernelBuilder kb("copy", {.threads = 512, .ctas_per_sm = 4});
  Tensor from = kb.tensor("from", f32, {words});
  Tensor to = kb.tensor("to", f32, {words});
  kb.grid(Dim::argument("sms") * 4);
  Value first = (block_id() * 512 + thread_id()) * 4;
  for_range(first, words, grid_size() * (512 * 4), [&](Value i) {
    to.store_vector({i}, from.load_vector({i}, 4, CacheHint::streaming),
                    CacheHint::streaming);
  });
  return kb.module();
}

int main(int argc, char **argv) try {
  int rows = argc > 2 ? std::atoi(argv[1]) : 8192;
  int columns = argc > 2 ? std::atoi(argv[2]) : 4096;
  auto device = open_cuda();
  std::size_t count = std::size_t(rows) * columns, bytes = count * 2;
  Kernel softmax = compile(build_softmax({.rows = rows, .columns = columns}));
  Kernel copy = compile(build_copy(static_cast<std::int64_t>(bytes / 4)));
  std::vector<std::uint16_t> x(count);
  fill_random(bf16, x.data(), count, 1, -4, 4);
  std::size_t sets = std::size_t(device->description().l2_bytes) / bytes + 3;
  std::vector<std::vector<LaunchArgument>> arguments;
  for (std::size_t i = 0; i < sets; ++i) {
    Buffer from = device->allocate(bytes), to = device->allocate(bytes);
    device->copy_in(from, x.data(), bytes);
    arguments.push_back({from, to});
  }
  constexpr int kRounds = 15, kLaunches = 20;
  std::vector<double> softmax_us, copy_us;
  int turn = 0;
  auto measure = [&](const Kernel &kernel) {
    std::vector<std::function<void(const Stream &)>> launches;
    for (const auto &set : arguments)
      launches.push_back(
          device->prepare(resolve(kernel, set, device->description())));
    Event begin = device->create_event(), end = device->create_event();
    device->record(begin);
    for (int i = 0; i < kLaunches; ++i)
      launches[turn++ % sets]({});
    device->record(end);
    return device->elapsed_us(begin, end) / kLaunches;
  };
  measure(softmax), measure(copy); // warm up
  for (int round = 0; round < kRounds; ++round) {
    softmax_us.push_back(measure(softmax));
    copy_us.push_back(measure(copy));
  }
  double moved = 2.0 * static_cast<double>(bytes);
  double ours = moved / median(softmax_us) / 1e3;
  double plain = moved / median(copy_us) / 1e3;
  std::time_t now = std::time(nullptr);
  char date[16];
  std::strftime(date, sizeof date, "%Y-%m-%d", std::gmtime(&now));
  std::printf("{\n  \"what\": \"row softmax of bf16 beside a copy of the same "
              "bytes, in turns, buffers beyond the L2 cache\",\n"
              "  \"device\": \"%s\",\n  \"date\": \"%s\",\n"
              "  \"rows\": %d,\n  \"columns\": %d,\n"
              "  \"softmax_us\": %.2f,\n  \"softmax_gb_per_s\": %.0f,\n"
              "  \"copy_us\": %.2f,\n  \"copy_gb_per_s\": %.0f,\n"
              "  \"ratio\": %.3f\n}\n",
              device->name().c_str(), date, rows, columns, median(softmax_us),
              ours, median(copy_us), plain, ours / plain);
  return 0;
} catch (const Error &error) {
  std::fprintf(stderr, "%s\n", error.what());
  return static_cast<int>(error.exit_status());
}
