// kernel_run: one launch for the results, some for the time.
#include "kernel_run.h"
#include "console/run_watch.h"
#include "console/say.h"
#include "console/show_findings.h"
#include "console/show_profile.h"

#include <kiln/check/explore.h>
#include <kiln/check/report.h>

#include <algorithm>
#include <fmt/ranges.h>
#include <optional>
#include <string>

namespace kiln::cli {

namespace {
/// The results on the host, and whether interleavings agree on them.
class Results {
public:
  explicit Results(const FetchResults &fetch) : fetch_(fetch) {}

  /// Memory is as this run left it.
  void take(const ExploredRun &run) {
    if (differs_)
      return; // what is on the host is to be verified
    std::vector<std::byte> bytes;
    for (std::span<const std::byte> part : fetch_())
      bytes.insert(bytes.end(), part.begin(), part.end());
    if (first_.empty()) {
      first_ = std::move(bytes);
      first_interleaving_ = run.interleaving.to_string();
      return;
    }
    differs_ = bytes != first_;
    if (differs_)
      report("differs",
             "the results of the interleavings {} and {}; the latter are "
             "verified",
             first_interleaving_, run.interleaving.to_string());
  }

private:
  const FetchResults &fetch_;
  std::vector<std::byte> first_;
  std::string first_interleaving_;
  bool differs_ = false;
};
} // namespace

/// "eager, lazy and random, seed 0", or why there is one.
static std::string interleavings_of(const ReportedLaunch &launch) {
  std::string text =
      fmt::format("{}", fmt::join(launch.interleavings, "; "));
  if (!launch.single_because.empty())
    text += fmt::format(" alone: {}", launch.single_because);
  return text;
}

/// On a GPU, once more for the time.
static void report_time(Device &device, const LaunchDescription &launch,
                        const Timing &timing) {
  double fastest_us = device.launch(launch).time_us;
  for (int i = 1; i < timing.launches; ++i)
    fastest_us = std::min(fastest_us, device.launch(launch).time_us);
  report("time", "{:.1f} us, {:.1f} TFLOP/s, the fastest of {}", fastest_us,
         timing.operations * 1e-6 / fastest_us, timing.launches);
}

bool run_kernel(Device &device, const Kernel &kernel,
                const std::vector<LaunchArgument> &arguments,
                const Timing &timing, const CheckSettings &settings,
                Outputs &outputs, const FetchResults &fetch) {
  LaunchDescription launch = device.describe(kernel, arguments);
  ExploreOptions options = settings.explore_options(device.description());
  RunWatch::attach(options.sim);
  Results results(fetch);
  Exploration exploration;
  {
    std::optional<RunWatch> watch;
    if (device.simulation())
      watch.emplace();
    exploration = explore(device, {&launch, 1}, options,
                          [&](const ExploredRun &run) { results.take(run); });
  }
  device.synchronize();
  Report report_all;
  report_all.max_findings = settings.sim.max_findings;
  report_all.add({.kernel = kernel.name,
                  .grid = launch.grid,
                  .block = launch.block,
                  .cluster = launch.cluster},
                 exploration);
  const LaunchResult &total = report_all.total();
  if (settings.sim.stats && total.instructions)
    show_stats(total);
  if (!report_all.timeline.events.empty())
    outputs.attempt([&] {
      show_timeline(report_all.timeline, settings.timeline_path);
    });
  if (!report_all.profiles.empty())
    outputs.attempt([&] {
      show_profile(report_all.profiles, settings.profile_path);
    });
  for (const Finding &finding : report_all.findings)
    show_finding(finding);
  show_left_out(report_all);
  if (!settings.report_path.empty())
    outputs.attempt([&] { report_all.save(settings.report_path); });
  if (!report_all.ok())
    return false;
  if (!device.simulation()) {
    report_time(device, launch, timing);
    return true;
  }
  report("time", "{:.1f} ms simulated, {} warp instructions",
         total.time_us / 1e3, total.instructions);
  report("checked", "{}", interleavings_of(report_all.launches.front()));
  return true;
}

} // namespace kiln::cli
