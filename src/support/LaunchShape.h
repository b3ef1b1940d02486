// LaunchShape: grids, blocks and clusters that a device can launch.
//
// The driver answers one that it cannot with CUDA_ERROR_INVALID_VALUE; both
// devices ask here first, so that the answer has the values and the limit.
#pragma once

#include "kiln/run/device.h"
#include "kiln/base/export.h"

namespace KILN_API kiln {

/// "8x8x1"
std::string formatShape(const std::array<std::uint32_t, 3> &shape);
std::uint64_t volume(const std::array<std::uint32_t, 3> &shape);

/// "launching gemm_ws, grid 8x8x1, block 256x1x1, cluster 1x1x1, 131072 bytes
/// of shared memory"
std::string describeLaunch(const LaunchDescription &launch,
                           const std::string &name);

/// Throws UserError where a size is 0, is more than the device allows, or the
/// grid does not consist of whole clusters.
void checkShape(const LaunchDescription &launch, const std::string &name,
                const DeviceDescription &device);

} // namespace kiln
