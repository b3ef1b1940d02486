// TensorMaps: a tensor map of a memref, put into global memory.
#include "cudart/TensorMapWords.h"
#include "kiln/language/memory/tensor_map_bytes.h"
#include "mgpu/Call.h"

#include <limits>

using namespace kiln;
using namespace kiln::mgpu;

/// The memref as the driver counts: the innermost dimension first.
static void describe(TensorMap &map, std::int64_t rank, const Memref &memref,
                     const std::int64_t *box) {
  auto element = static_cast<std::int64_t>(size_bytes(map.type));
  map.address = reinterpret_cast<std::uint64_t>(memref.aligned) +
                static_cast<std::uint64_t>(memref.offset * element);
  if (memref.offset != 0)
    session().findings().sayOnce(fmt::format(
        "the memref of a tensor map begins {} elements behind its pointer; "
        "MLIR's own runtime takes the map from the pointer",
        memref.offset));
  for (std::int64_t axis = rank; axis-- > 0;) {
    if (box[axis] < 1 || box[axis] > std::numeric_limits<std::int32_t>::max())
      userError("a box of {} elements in dimension {} is not a valid one",
                box[axis], axis);
    map.dims.push_back(static_cast<std::uint64_t>(memref.size(axis)));
    map.box.push_back(static_cast<std::uint32_t>(box[axis]));
    map.element_strides.push_back(1);
    if (axis > 0)
      map.strides_bytes.push_back(
          static_cast<std::uint64_t>(memref.stride(rank, axis - 1) * element));
  }
}

KILN_MGPU void *
mgpuTensorMapEncodeTiledMemref(std::int64_t rank, Memref *memref,
                               std::int64_t type, std::int64_t interleave,
                               std::int64_t swizzle, std::int64_t l2Promotion,
                               std::int64_t oobFill, std::int64_t *box) {
  return attempt<void *>(
      "mgpuTensorMapEncodeTiledMemref", nullptr, [&]() -> void * {
        std::optional<TensorMap> map = cudart::tensorMapOf(
            type, interleave, swizzle, l2Promotion, oobFill);
        if (!map || rank < 1 || rank > 5)
          userError("a tensor map of rank {}, type {}, interleave {}, swizzle "
                    "{}, L2 promotion {} and fill {} is not one that the "
                    "driver knows",
                    rank, type, interleave, swizzle, l2Promotion, oobFill);
        describe(*map, rank, *memref, box);
        check(*map, "the tensor map of a memref");
        Device &device = session().device();
        std::array<std::byte, 128> image = device.kind() == DeviceKind::sim
                                               ? sim_tensor_map(*map)
                                               : cuda_tensor_map(*map);
        std::uint64_t address = session().allocate(image.size());
        device.copy_in(session().find(address)->buffer, image.data(),
                       image.size());
        return reinterpret_cast<void *>(address);
      });
}
