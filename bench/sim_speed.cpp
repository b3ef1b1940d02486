// sim_speed: the simulator against a CPU's own matrix product of that size.
//
//     build/bin/bench_sim_speed --benchmark_out=bench/results/sim_speed.json
//         --benchmark_out_format=json
//
// The warp-specialized f16 GEMM of 1024 x 1024 x 1024 (tn, tiles of
// 128 x 128 x 64) is simulated with the checks off and on, for Hopper and for
// Blackwell, and OpenBLAS does sgemm of that size, on all cores of the machine.
// The counter `ratio` of a simulation is its time over that of sgemm in the
// same run, `cpu_ms` the processor time that it takes, of all threads: the one
// to compare where others use the machine too.
#include <kiln/kiln.h>

#include <benchmark/benchmark.h>
#include <cblas.h>

#include <algorithm>
#include <chrono>
#include <sys/resource.h>

using namespace kiln;

static constexpr int kSize = 1024;

static double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

/// The fastest of a few runs: others may use the cores too.
template <typename Work> static double fastest_seconds(int runs, Work &&work) {
  double best = 1e30;
  for (int i = 0; i < runs; ++i) {
    auto start = std::chrono::steady_clock::now();
    work();
    best = std::min(best, seconds_since(start));
  }
  return best;
}

/// Processor time of this process so far.
static double cpu_seconds() {
  rusage used;
  getrusage(RUSAGE_SELF, &used);
  return static_cast<double>(used.ru_utime.tv_sec) +
         static_cast<double>(used.ru_utime.tv_usec) * 1e-6;
}

static double sgemm_seconds() {
  std::vector<float> a(kSize * kSize, 1.0f), b(kSize * kSize, 0.5f),
      d(kSize * kSize);
  return fastest_seconds(10, [&] {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, kSize, kSize, kSize,
                1.0f, a.data(), kSize, b.data(), kSize, 0.0f, d.data(), kSize);
    benchmark::DoNotOptimize(d.data());
  });
}

static void sgemm(benchmark::State &state) {
  for (auto _ : state)
    state.SetIterationTime(sgemm_seconds());
}
BENCHMARK(sgemm)->UseManualTime()->Iterations(1)->Unit(benchmark::kMillisecond);

static void simulate(benchmark::State &state, const DeviceDescription &gpu,
                     bool has_checks) {
  GemmProblem problem{.m = kSize, .n = kSize, .k = kSize};
  Kernel kernel =
      compile(build_gemm(problem, fit(problem, GemmSchedule(), gpu), {}, gpu));
  std::vector<std::uint16_t> a(kSize * kSize), b(kSize * kSize);
  fill_random(Type::f16, a.data(), a.size(), 1);
  fill_random(Type::f16, b.data(), b.size(), 2);
  std::vector<float> d(kSize * kSize);
  std::shared_ptr<Device> device =
      open_sim({.device = gpu, .checks = has_checks});
  LaunchResult result;
  for (auto _ : state) {
    double reference = sgemm_seconds();
    double cpu = 1e30;
    double time = fastest_seconds(3, [&] {
      double before = cpu_seconds();
      result = try_run(*device, kernel, a, b, d);
      cpu = std::min(cpu, cpu_seconds() - before);
    });
    state.SetIterationTime(time);
    state.counters["cpu_ms"] = cpu * 1e3;
    state.counters["ratio"] = time / reference;
  }
  if (!result.ok())
    state.SkipWithError("the simulator found an error");
  state.counters["ns_per_warp_instruction"] =
      result.time_us * 1e3 / static_cast<double>(result.instructions);
}
BENCHMARK_CAPTURE(simulate, checks_off, DeviceDescription::h200(), false)
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(simulate, checks_on, DeviceDescription::h200(), true)
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(simulate, sm_100a_checks_off, DeviceDescription::b200(),
                  false)
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(simulate, sm_100a_checks_on, DeviceDescription::b200(), true)
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

BENCHMARK_MAIN();
