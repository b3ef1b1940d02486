// kernel_run: launch a kernel, and say what was found and how long it took.
#pragma once

#include "console/output_file.h"
#include "options/sim_options.h"

#include <kiln/run/device.h>

#include <functional>
#include <vector>

namespace kiln::cli {

/// What is timed on a GPU, after the launch whose results count.
struct Timing {
  int launches; ///< the fastest is reported: others find an idle GPU's clock
  double operations; ///< of one launch
};

/// Launch once and call `fetch` for the results; on a GPU some times more, for
/// the time. False where the simulator found an error.
bool run_kernel(Device &device, const Kernel &kernel,
                const std::vector<LaunchArgument> &arguments,
                const Timing &timing, const SimFlags &sim, Outputs &outputs,
                const std::function<void()> &fetch);

} // namespace kiln::cli
