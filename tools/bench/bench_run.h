// bench_run: problem after problem, measured beside a library in one process.
//
// A problem is verified first: the time of a wrong result is no time.
#pragma once

#include "bench_report.h"
#include "options/command_line.h"

#include <kiln/base/error.h>
#include <kiln/measure/gpu_clock.h>
#include <kiln/measure/measure.h>

#include <functional>
#include <memory>
#include <optional>

namespace kiln::cli {

/// The options that every bench has.
struct BenchFlags {
  std::string json_path, chart_path, against_path;
  std::string device = "cuda";
  std::uint64_t data_seed = 0;
  int rounds = BenchPlan().rounds;
  double pause_ms = 200, burst_ms = 10, settle_s = 3;
  bool is_unverified = false;

  void add_to(Command command);
};

/// What a bench holds on to while it runs.
class BenchRun {
public:
  /// Throws UserError where the flags ask for what cannot be.
  explicit BenchRun(const BenchFlags &flags);

  /// Verify each contender, and measure all where the first, Kiln, is right.
  void measure(const std::vector<Contender> &contenders,
               const std::function<Comparison(const Contender &)> &verify,
               ProblemResult &result);

  /// Kiln's kernel on sets of buffers, beside what `add_peers` adds; what that
  /// refuses is told.
  template <typename Sets>
  void measure(Sets &sets, const Kernel &kernel,
               const std::function<void(std::vector<Contender> &)> &add_peers,
               ProblemResult &result) {
    result.kernel = kernel.name;
    result.buffer_sets = sets.count();
    std::vector<Contender> contenders = {sets.contender("kiln", kernel)};
    try {
      add_peers(contenders);
    } catch (const UserError &error) {
      result.note = error.message();
    }
    measure(
        contenders, [&](const Contender &one) { return sets.verify(one); },
        result);
  }

  /// What a copy of device memory reaches, read and written; measured when it
  /// is first asked for.
  double copy_gb_per_s();

  const BenchFlags &flags;
  const std::shared_ptr<Device> device;
  Stopwatch watch;
  const BenchPlan plan;

private:
  GpuClock clock_;
  std::optional<double> copy_gb_per_s_;
};

/// What a contender writes into `output`, which was poisoned before, compared
/// by `compare`, whose result has the numbers of a Comparison.
template <typename Compare>
Comparison verified(Device &device, const Contender &contender,
                    const Buffer &output, Compare &&compare) {
  device.fill(output, 0xff);
  contender.launches.front()({});
  device.synchronize();
  auto found = compare();
  Comparison result;
  result.ok = found.ok();
  result.max_rel_err = found.max_rel_err;
  result.compared = found.compared;
  result.wrong = found.wrong;
  result.is_sampled = found.is_sampled;
  return result;
}

/// One of those that are measured.
struct BenchEntry {
  std::string name; ///< shown while it is
  std::function<ProblemResult(BenchRun &)> run;
};

/// Measure one after the other; `open` finds the library to compare with, and
/// tells the report of it.
ExitStatus run_bench(const BenchFlags &flags,
                     const std::vector<BenchEntry> &entries,
                     const std::function<void(Device &, BenchReport &)> &open);

void add_bench_attention(Command bench, std::function<ExitStatus()> &action);
void add_bench_grouped_gemm(Command bench, std::function<ExitStatus()> &action);
void add_bench_seeds(Command bench, std::function<ExitStatus()> &action);

} // namespace kiln::cli
