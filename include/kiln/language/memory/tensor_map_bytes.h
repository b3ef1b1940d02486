// tensor_map_bytes.h: a tensor map as a GPU's kernels read it.
//
// A launch encodes the maps in its parameters by itself. This is for a map that
// lies in global memory, as MLIR's programs have them.
#pragma once

#include <kiln/base/export.h>
#include <kiln/language/memory/tensor_map.h>

#include <array>
#include <cstddef>

namespace KILN_API kiln {

/// Encoded by the CUDA driver. Throws RuntimeError where there is none.
std::array<std::byte, 128> cuda_tensor_map(const TensorMap &map);

} // namespace kiln
