// TensorMaps: cuTensorMapEncodeTiled and its like for pixels, in the
// simulator's own encoding.
#include "cudart/TensorMapWords.h"
#include "cudart/driver/Driver.h"

#include <cstring>

using namespace kiln;

KILN_CUDA CUresult cuTensorMapEncodeTiled(
    void *map, int type, std::uint32_t rank, void *address,
    const std::uint64_t *dims, const std::uint64_t *strides,
    const std::uint32_t *box, const std::uint32_t *elementStrides,
    int interleave, int swizzle, int l2Promotion, int oobFill) {
  return driverCall("cuTensorMapEncodeTiled", [&]() -> CUresult {
    std::optional<TensorMap> description = cudart::tensorMapOf(
        type, interleave, swizzle, l2Promotion, oobFill ? 1 : 0);
    if (!map || !dims || !box || !elementStrides || (rank > 1 && !strides) ||
        !description || rank < 1 || rank > 5)
      return CUDA_ERROR_INVALID_VALUE;
    description->address = reinterpret_cast<std::uint64_t>(address);
    description->dims.assign(dims, dims + rank);
    description->strides_bytes.assign(strides, strides + rank - 1);
    description->box.assign(box, box + rank);
    description->element_strides.assign(elementStrides, elementStrides + rank);
    auto image = sim_tensor_map(*description);
    std::memcpy(map, image.data(), image.size());
    return cudaSuccess;
  });
}

/// The corners of the bounding box, the channels and the pixels of a copy
/// stand where a tiled map has its box.
KILN_CUDA CUresult cuTensorMapEncodeIm2col(
    void *map, int type, std::uint32_t rank, void *address,
    const std::uint64_t *dims, const std::uint64_t *strides, const int *lower,
    const int *upper, std::uint32_t channels, std::uint32_t pixels,
    const std::uint32_t *elementStrides, int interleave, int swizzle,
    int l2Promotion, int oobFill) {
  return driverCall("cuTensorMapEncodeIm2col", [&]() -> CUresult {
    std::optional<TensorMap> description = cudart::tensorMapOf(
        type, interleave, swizzle, l2Promotion, oobFill ? 1 : 0);
    if (!map || !dims || !strides || !lower || !upper || !elementStrides ||
        !description || rank < 3 || rank > 5)
      return CUDA_ERROR_INVALID_VALUE;
    description->address = reinterpret_cast<std::uint64_t>(address);
    description->dims.assign(dims, dims + rank);
    description->strides_bytes.assign(strides, strides + rank - 1);
    description->box.assign(rank, 1);
    description->box[0] = channels;
    description->element_strides.assign(elementStrides, elementStrides + rank);
    description->im2col = Im2col{{lower, lower + rank - 2},
                                 {upper, upper + rank - 2},
                                 channels,
                                 pixels};
    auto image = sim_tensor_map(*description);
    std::memcpy(map, image.data(), image.size());
    return cudaSuccess;
  });
}
