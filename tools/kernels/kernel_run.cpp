// kernel_run: one launch for the results, some for the time.
#include "kernel_run.h"
#include "console/say.h"

#include <algorithm>
#include <optional>

namespace kiln::cli {

/// Add what another order found, each finding once, and what it cost.
static void add(LaunchResult &result, LaunchResult &&more) {
  for (Finding &finding : more.findings) {
    bool is_told = std::ranges::any_of(result.findings, [&](const Finding &f) {
      return f.id == finding.id && f.ptx_line == finding.ptx_line;
    });
    if (!is_told)
      result.findings.push_back(std::move(finding));
  }
  result.is_finished = result.is_finished && more.is_finished;
  result.time_us += more.time_us;
  result.instructions += more.instructions;
}

/// Launch; on the simulator in three orders, unless one was asked for: what one
/// hides, another shows. The last one's results stay, the least eager.
static LaunchResult launch_in_orders(Device &device, const Kernel &kernel,
                                     const std::vector<LaunchArgument> &given,
                                     const SimFlags &sim) {
  if (device.kind() != DeviceKind::sim || !sim.order.empty())
    return device.launch(kernel, given);
  auto before = snapshot_sim(device);
  LaunchResult result = device.launch(kernel, given);
  SimOptions options = sim.options();
  options.device = device.description();
  RunWatch::attach(options);
  for (Interleaving order : {Interleaving::random, Interleaving::lazy}) {
    if (!result.is_finished)
      break;
    before->restore();
    options.interleaving = order;
    set_sim_options(device, options);
    add(result, device.launch(kernel, given));
  }
  return result;
}

bool run_kernel(Device &device, const Kernel &kernel,
                const std::vector<LaunchArgument> &arguments,
                const Timing &timing, const SimFlags &sim, Outputs &outputs,
                const std::function<void()> &fetch) {
  std::optional<RunWatch> watch;
  if (device.kind() == DeviceKind::sim)
    watch.emplace();
  LaunchResult result = launch_in_orders(device, kernel, arguments, sim);
  watch.reset();
  fetch();
  device.synchronize();
  if (sim.has_stats && result.instructions)
    show_stats(result);
  if (!result.timeline.events.empty())
    outputs.attempt([&] { show_timeline(result.timeline, sim.timeline_path); });
  for (const Finding &finding : result.findings)
    show_finding(finding);
  if (!result.ok())
    return false;
  if (result.instructions) {
    report("time", "{:.1f} ms simulated{}, {} warp instructions",
           result.time_us / 1e3, sim.order.empty() ? " in three orders" : "",
           result.instructions);
    return true;
  }
  double fastest_us = device.launch(kernel, arguments).time_us;
  for (int i = 1; i < timing.launches; ++i)
    fastest_us = std::min(fastest_us, device.launch(kernel, arguments).time_us);
  report("time", "{:.1f} us, {:.1f} TFLOP/s, the fastest of {}", fastest_us,
         timing.operations * 1e-6 / fastest_us, timing.launches);
  return true;
}

} // namespace kiln::cli
