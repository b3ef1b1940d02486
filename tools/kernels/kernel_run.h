// kernel_run: launch a kernel, and say what was found and how long it took.
#pragma once

#include "console/output_file.h"

#include <kiln/check/options.h>
#include <kiln/run/device.h>

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace kiln::cli {

/// What is timed on a GPU, after the launch whose results count.
struct Timing {
  int launches; ///< the fastest is reported: others find an idle GPU's clock
  double operations; ///< of one launch
};

/// Copies what the kernel has written to the host, and shows where it is there.
using FetchResults =
    std::function<std::vector<std::span<const std::byte>>()>;

/// Launch, on a simulator in the interleavings of the settings, and fetch the
/// results: the first ones that another interleaving gives otherwise, so that
/// they are verified, else those of all. On a GPU it is launched some times more,
/// for the time. False where the simulator found an error.
bool run_kernel(Device &device, const Kernel &kernel,
                const std::vector<LaunchArgument> &arguments,
                const Timing &timing, const CheckSettings &settings,
                Outputs &outputs, const FetchResults &fetch);

} // namespace kiln::cli
