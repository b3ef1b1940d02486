// TensorMaps: cuTensorMapEncodeTiled, in the simulator's own encoding.
#include "cudart/driver/Driver.h"

#include <cstring>
#include <optional>

using namespace kiln;

/// The element types of the driver, in its order; FTZ variants read the same.
static std::optional<Type> typeOf(int number) {
  static constexpr Type kTypes[] = {u8,  u16, u32,  i32, u64,  i64, f16,
                                    f32, f64, bf16, f32, tf32, tf32};
  if (number < 0 || number >= static_cast<int>(std::size(kTypes)))
    return std::nullopt;
  return kTypes[number];
}

KILN_CUDA CUresult cuTensorMapEncodeTiled(
    void *map, int type, std::uint32_t rank, void *address,
    const std::uint64_t *dims, const std::uint64_t *strides,
    const std::uint32_t *box, const std::uint32_t *elementStrides,
    int interleave, int swizzle, int l2Promotion, int oobFill) {
  return driverCall("cuTensorMapEncodeTiled", [&]() -> CUresult {
    static constexpr Swizzle kSwizzles[] = {Swizzle::none, Swizzle::b32,
                                            Swizzle::b64, Swizzle::b128};
    static constexpr Interleave kInterleaves[] = {
        Interleave::none, Interleave::b16, Interleave::b32};
    static constexpr L2Promotion kPromotions[] = {
        L2Promotion::none, L2Promotion::b64, L2Promotion::b128,
        L2Promotion::b256};
    std::optional<Type> element = typeOf(type);
    if (!element || rank < 1 || rank > 5)
      return CUDA_ERROR_INVALID_VALUE;
    if (swizzle < 0 || swizzle > 3 || interleave < 0 || interleave > 2 ||
        l2Promotion < 0 || l2Promotion > 3)
      return CUDA_ERROR_NOT_SUPPORTED;
    TensorMap description;
    description.type = *element;
    description.address = reinterpret_cast<std::uint64_t>(address);
    description.dims.assign(dims, dims + rank);
    description.strides_bytes.assign(strides, strides + rank - 1);
    description.box.assign(box, box + rank);
    description.element_strides.assign(elementStrides, elementStrides + rank);
    description.swizzle = kSwizzles[swizzle];
    description.interleave = kInterleaves[interleave];
    description.l2 = kPromotions[l2Promotion];
    description.oob = oobFill ? OobFill::nan : OobFill::zeros;
    auto image = sim_tensor_map(description);
    std::memcpy(map, image.data(), image.size());
    return cudaSuccess;
  });
}
