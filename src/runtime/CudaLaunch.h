// CudaLaunch: check a launch and put its parameters into the driver's form.
//
// The driver answers most mistakes in a launch with CUDA_ERROR_INVALID_VALUE,
// and some by reading past the parameters. What can be known before is said
// here, with the values.
#pragma once

#include "kiln/run/device.h"
#include "runtime/CudaDriver.h"
#include "runtime/CudaModule.h"
#include "support/LaunchShape.h"

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace kiln {

/// Throws UserError where the parameters are not those the entry declares.
void checkParameters(const LaunchDescription &launch, const CudaEntry &entry);

/// The parameters of a launch as the driver wants them: a pointer to each.
/// Raw bytes are not copied: the launch must outlive this.
struct PackedParameters {
  std::deque<std::uint64_t> words; ///< buffers and scalars, little endian
  std::deque<cuda::CUtensorMap> maps;
  std::vector<void *> pointers;
};
PackedParameters packParameters(const CudaDriver &driver,
                                const LaunchDescription &launch,
                                const std::string &name);

/// The bytes of a map that is not a parameter of a launch.
std::array<std::byte, 128> encodeAlone(const CudaDriver &driver,
                                       const TensorMap &map);

} // namespace kiln
