// cuda_unchecked: a launch of a CUDA program that nobody chose to check
// (`kiln run --kernel`), beside the same launch without checks on the simulator
// itself (`kiln sim --checks off`): a product by mma.sync, in turns.
//
//     bench_cuda_unchecked         prints the medians and the spread
#include <kiln/base/file.h>
#include <kiln/check/sim.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

extern "C" {
int cuModuleLoadData(void **module, const void *image);
int cuModuleGetFunction(void **function, void *module, const char *name);
int cuMemAlloc_v2(std::uint64_t *address, std::size_t bytes);
int cuMemsetD8_v2(std::uint64_t to, unsigned char value, std::size_t count);
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz,
                   unsigned bx, unsigned by, unsigned bz, unsigned smem,
                   void *stream, void **parameters, void **extra);
}

static constexpr int kSize = 512, kTile = 64, kRuns = 11;

template <typename Work> static double time_ms(const Work &work) {
  auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(
             std::chrono::steady_clock::now() - start)
      .count();
}

static void print(const char *what, std::vector<double> times) {
  std::sort(times.begin(), times.end());
  std::printf("%-24s %.1f ms, from %.1f to %.1f\n", what,
              times[times.size() / 2], times.front(), times.back());
}

int main() {
  setenv("KILN_KERNEL", "^nothing$", 1);
  std::string ptx =
      kiln::read_file(KILN_SOURCE_DIR "/tests/corpus/mma_gemm.ptx");
  constexpr std::size_t kBytes = 2 * kSize * kSize;
  int n = kSize, k = kSize, status = 0;

  void *module = nullptr, *function = nullptr;
  std::uint64_t memory[3] = {};
  status |= cuModuleLoadData(&module, ptx.c_str());
  status |= cuModuleGetFunction(&function, module, "mma_gemm");
  for (std::uint64_t &address : memory) {
    status |= cuMemAlloc_v2(&address, 2 * kBytes);
    status |= cuMemsetD8_v2(address, 0, 2 * kBytes);
  }
  void *parameters[] = {&memory[0], &memory[1], &memory[2], &n, &k};

  auto device = kiln::open_sim({.checks = false});
  std::string_view text = ptx;
  kiln::LaunchDescription launch;
  launch.name = "mma_gemm";
  launch.module = device->load({&text, 1});
  launch.grid = {kSize / kTile, kSize / kTile, 1};
  launch.block = {128, 1, 1};
  for (int i = 0; i < 3; ++i) {
    kiln::Buffer buffer = device->allocate(2 * kBytes);
    device->fill(buffer, 0);
    launch.parameters.push_back({buffer});
  }
  launch.parameters.push_back({kiln::Scalar(n)});
  launch.parameters.push_back({kiln::Scalar(k)});

  std::vector<double> program, simulator;
  for (int i = 0; i <= kRuns; ++i) {
    double one = time_ms([&] {
      status |= cuLaunchKernel(function, kSize / kTile, kSize / kTile, 1, 128,
                               1, 1, 0, nullptr, parameters, nullptr);
    });
    double other = time_ms([&] { status |= !device->launch(launch).ok(); });
    if (i == 0)
      continue; // the first one decodes
    program.push_back(one);
    simulator.push_back(other);
  }
  print("kiln run, not chosen", program);
  print("kiln sim --checks off", simulator);
  return status;
}
