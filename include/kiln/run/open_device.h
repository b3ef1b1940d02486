// open_device.h: a device by its name: the GPU, or the simulator.
#pragma once

#include <kiln/base/export.h>
#include <kiln/check/sim_options.h>
#include <kiln/run/device.h>

#include <memory>
#include <string_view>

namespace KILN_API kiln {

/// Throws UserError where it is none of auto, sim, cuda and cuda:N.
void check_device_id(std::string_view id);

/// "auto": the GPU where a driver and one are found, else the simulator; or
/// "cuda", "cuda:1", "sim".
std::shared_ptr<Device> open_device(std::string_view id = "auto",
                                    const SimOptions &options = {});

} // namespace kiln
