// bench_run: open, verify, measure, report.
#include "bench_run.h"
#include "bench_chart.h"
#include "console/output_file.h"
#include "console/progress.h"

#include <kiln/base/file.h>
#include <kiln/check/sim.h>
#include <kiln/run/open_device.h>

#include <cstdlib>
#include <fmt/format.h>
#include <optional>

namespace kiln::cli {

void BenchFlags::add_to(Command command) {
  command.add_option("--json", json_path, "write every sample to this file");
  command.add_option("--chart", chart_path,
                     "draw the ratios as SVG to this file");
  command.add_option("--against", against_path,
                     "compare with a run that --json has stored");
  command.add_option("--device", device, "cuda or cuda:1")
      .capture_default_str();
  command.add_option("--rounds", rounds, "samples of each")
      .capture_default_str();
  command.add_option("--pause-ms", pause_ms, "before each burst")
      .capture_default_str();
  command.add_option("--burst-ms", burst_ms, "how long one takes")
      .capture_default_str();
  command
      .add_option("--settle-s", settle_s,
                  "work before sustained times are taken")
      .capture_default_str();
  command.add_option("--data-seed", data_seed, "of the numbers")
      .capture_default_str();
  command.add_flag("--no-verify", is_unverified,
                   "do not compare with the reference first");
}

/// 1 of "cuda:1"; open_device has refused what is none.
static int device_number(const std::string &device) {
  std::size_t colon = device.find(':');
  return colon == std::string::npos ? 0 : std::atoi(&device[colon + 1]);
}

static std::shared_ptr<Device> open_gpu(const BenchFlags &flags) {
  if (!flags.device.starts_with("cuda"))
    throw UserError(fmt::format("times are taken on a GPU; --device takes cuda "
                                "or cuda:1, not {}",
                                flags.device));
  if (flags.rounds < 1 || flags.pause_ms < 0 || flags.burst_ms < 0 ||
      flags.settle_s < 0)
    throw UserError(fmt::format(
        "--rounds {}, --pause-ms {}, --burst-ms {}, --settle-s {}: the first "
        "must be at least 1, the others not negative",
        flags.rounds, flags.pause_ms, flags.burst_ms, flags.settle_s));
  return open_device(flags.device);
}

static BenchPlan plan_of(const BenchFlags &flags) {
  auto milliseconds = [](double ms) {
    return std::chrono::milliseconds(static_cast<std::int64_t>(ms));
  };
  return {.rounds = flags.rounds,
          .pause = milliseconds(flags.pause_ms),
          .burst = milliseconds(flags.burst_ms),
          .settle = milliseconds(1e3 * flags.settle_s)};
}

BenchRun::BenchRun(const BenchFlags &asked)
    : flags(asked), device(open_gpu(asked)), watch(*device),
      plan(plan_of(asked)), clock_(device_number(asked.device)) {}

void BenchRun::measure(
    const std::vector<Contender> &contenders,
    const std::function<Comparison(const Contender &)> &verify,
    ProblemResult &result) {
  if (!flags.is_unverified) {
    for (const Contender &contender : contenders)
      result.comparisons.push_back(verify(contender));
    if (!result.comparisons.front().ok)
      return;
  }
  for (const Contender &contender : contenders)
    result.contenders.push_back(contender.name);
  auto take = [&](auto measure_all, std::vector<Samples> &mhz) {
    mhz.assign(contenders.size(), {});
    BenchPlan clocked = plan;
    clocked.after_burst = [&](std::size_t i) {
      if (auto now = clock_.mhz())
        mhz[i].push_back(*now);
    };
    return measure_all(watch, contenders, clocked);
  };
  result.rested = take(measure_rested, result.rested_mhz);
  result.sustained = take(measure_sustained, result.sustained_mhz);
}

double BenchRun::copy_gb_per_s() {
  if (copy_gb_per_s_)
    return *copy_gb_per_s_;
  constexpr std::size_t kBytes = std::size_t{256} << 20; // beyond any L2
  Buffer from = device->allocate(kBytes), to = device->allocate(kBytes);
  device->fill(from, 0x5a);
  Contender copy{"copy", {[&](const Stream &stream) {
                   device->enqueue_copy(to.address(), from.address(), kBytes,
                                        stream);
                 }}};
  double us = median(measure_rested(watch, {copy}, plan).front());
  copy_gb_per_s_ = 2 * static_cast<double>(kBytes) / us / 1e3;
  return *copy_gb_per_s_;
}

ExitStatus run_bench(const BenchFlags &flags,
                     const std::vector<BenchEntry> &entries,
                     const std::function<void(Device &, BenchReport &)> &open) {
  check_output("--json", flags.json_path);
  check_output("--chart", flags.chart_path);
  std::optional<StoredRun> before;
  if (!flags.against_path.empty())
    before = StoredRun::read(flags.against_path);
  BenchRun run(flags);
  BenchReport report;
  report.machine = run.device->name();
  try {
    open(*run.device, report);
  } catch (const RuntimeError &error) {
    report.library_missing = error.message();
  }
  report.print_header();
  for (const BenchEntry &entry : entries) {
    show_progress(report.results.size(), entries.size(), entry.name);
    report.results.push_back(entry.run(run));
    end_progress();
    report.results.back().print();
  }
  report.print_summary();
  if (before)
    report.print_against(*before);
  Outputs outputs;
  if (!flags.chart_path.empty())
    outputs.attempt(
        [&] { write_file(flags.chart_path, {ratio_chart(report)}); });
  if (!flags.json_path.empty())
    outputs.attempt([&] { report.write_json(flags.json_path); });
  return outputs.conclude(report.is_right() ? ExitStatus::ok
                                            : ExitStatus::wrong);
}

} // namespace kiln::cli
