// launch_save: the launch file of a kernel of Kiln's own, for `kiln sim`.
#pragma once

#include <kiln/device.h>

#include <span>
#include <string>

namespace kiln::cli {

/// A launch file (docs/launch-file.md) that launches `kernel` with these
/// arguments: buffers that are read begin with random numbers, those that are
/// written as nobody's. The addresses and sizes of buffers count, not what lies
/// there.
std::string launch_file_text(const Kernel &kernel,
                             std::span<const LaunchArgument> arguments,
                             const DeviceDescription &device);

} // namespace kiln::cli
