// compile_time: how long the default GEMM takes from C++ to PTX, by phase.
//
//     build/bin/bench_compile_time --benchmark_out=FILE.json
//         --benchmark_out_format=json
//
// Everything happens in this process, as in a program that links Kiln; the
// cache is off except where it is what is measured.
#include <kiln/kiln.h>

#include <benchmark/benchmark.h>

using namespace kiln;

static const GemmProblem kProblem{.m = 4096, .n = 4096, .k = 4096};
static const GemmSchedule kSchedule; // warp-specialized 128x128x64, 4 stages

static void build(benchmark::State &state) {
  for (auto _ : state)
    benchmark::DoNotOptimize(build_gemm(kProblem, kSchedule));
}
BENCHMARK(build)->Unit(benchmark::kMillisecond);

/// MLIR to PTX, with the three parts of it as counters (milliseconds).
static void lower_to_ptx(benchmark::State &state) {
  Module module = build_gemm(kProblem, kSchedule);
  CompileOptions::Timing timing;
  for (auto _ : state)
    benchmark::DoNotOptimize(
        compile(module, {.use_cache = false, .timing = &timing}));
  auto per_run = [&](double us) {
    return benchmark::Counter(us / 1e3, benchmark::Counter::kAvgIterations);
  };
  state.counters["mlir_ms"] = per_run(timing.lower_us);
  state.counters["llvm_ms"] = per_run(timing.llvm_us);
  state.counters["codegen_ms"] = per_run(timing.ptx_us);
}
BENCHMARK(lower_to_ptx)->Unit(benchmark::kMillisecond);

/// The same module again, found in the cache.
static void cache_hit(benchmark::State &state) {
  Module module = build_gemm(kProblem, kSchedule);
  compile(module);
  CompileOptions::Timing timing;
  compile(module, {.timing = &timing});
  if (!timing.from_cache) {
    state.SkipWithError("the cache is off or cannot be written");
    return;
  }
  for (auto _ : state)
    benchmark::DoNotOptimize(compile(module));
}
BENCHMARK(cache_hit)->Unit(benchmark::kMillisecond);

/// PTX to machine code, by ptxas in a process of its own.
static void ptxas(benchmark::State &state) {
  if (!find_ptxas()) {
    state.SkipWithError("no ptxas was found");
    return;
  }
  Kernel kernel = compile(build_gemm(kProblem, kSchedule));
  for (auto _ : state)
    benchmark::DoNotOptimize(
        assemble(kernel.ptx, kernel.name, {.use_cache = false}));
}
BENCHMARK(ptxas)->Unit(benchmark::kMillisecond);

BENCHMARK_MAIN();
