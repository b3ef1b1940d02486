// kernel_run: one launch for the results, some for the time.
#include "kernel_run.h"
#include "say.h"

#include <algorithm>
#include <optional>

namespace kiln::cli {

bool run_kernel(Device &device, const Kernel &kernel,
                const std::vector<LaunchArgument> &arguments,
                const Timing &timing, const SimFlags &sim, Outputs &outputs,
                const std::function<void()> &fetch) {
  std::optional<RunWatch> watch;
  if (device.kind() == DeviceKind::sim)
    watch.emplace();
  LaunchResult result = device.launch(kernel, arguments);
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
    report("time", "{:.1f} ms simulated, {} warp instructions",
           result.time_us / 1e3, result.instructions);
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
