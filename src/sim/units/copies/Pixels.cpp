// Pixels: a walk through the bounding box of a map (PTX ISA, "Im2col mode").
#include "sim/units/copies/Pixels.h"

namespace kiln::sim {

std::vector<BoxIndex> pixelsOf(const TensorMap &map, const BoxIndex &start,
                               const std::vector<std::int64_t> &offsets) {
  const Im2col &im2col = *map.im2col;
  std::size_t dimensions = offsets.size();
  BoxIndex at = start;
  std::vector<BoxIndex> pixels;
  for (std::uint32_t i = 0; i < im2col.pixels; ++i) {
    BoxIndex pixel = at;
    for (std::size_t axis = 0; axis < dimensions; ++axis)
      pixel[axis + 1] += offsets[axis];
    pixels.push_back(pixel);
    std::size_t axis = 0;
    for (; axis < dimensions; ++axis) {
      at[axis + 1] += map.element_strides[axis + 1];
      std::int64_t last = static_cast<std::int64_t>(map.dims[axis + 1]) - 1 +
                          im2col.upper[axis];
      if (at[axis + 1] <= last)
        break;
      at[axis + 1] = im2col.lower[axis];
    }
    if (axis == dimensions) // the next image
      ++at[dimensions + 1];
  }
  return pixels;
}

} // namespace kiln::sim
