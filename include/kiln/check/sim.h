// sim.h: a device that needs no GPU: PTX executed on the CPU, and checked.
//
//     auto device = open_sim();
//     LaunchResult result = try_run(*device, kernel, a, b, d);
//     for (const Finding &finding : result.findings) ...
//
// It implements device.h like the GPU does. What it finds wrong is in the
// result of a launch. Most errors end the launch; one in the order of accesses
// (a race) and a warning do not.
#pragma once

#include <kiln/base/export.h>
#include <kiln/check/explanation.h>
#include <kiln/check/sim_options.h>
#include <kiln/check/simulation.h>
#include <kiln/run/device.h>

#include <array>
#include <cstddef>
#include <memory>
#include <string_view>

namespace KILN_API kiln {

/// The device that PTX is simulated on where nobody names one: what its .target
/// stands for, an H200 for those that it runs. Throws UserError where no device
/// that Kiln knows runs it.
const DeviceDescription &sim_device_for(std::string_view ptx);

/// The simulator. Its buffers are host memory with bounds. A launch of PTX that
/// the described device does not run is refused. Throws UserError where `allow`
/// or `warn` names an id that does not exist.
std::shared_ptr<Device> open_sim(const SimOptions &options = {});

/// A tensor map as kernels find it in their parameters on the simulator: for a
/// map inside a struct that is passed by value.
std::array<std::byte, 128> sim_tensor_map(const TensorMap &map);

} // namespace kiln
