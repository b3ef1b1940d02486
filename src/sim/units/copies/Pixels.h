// Pixels: which pixels of a tensor a copy through an im2col map takes.
#pragma once

#include "sim/units/copies/TensorBox.h"

namespace kiln::sim {

/// The first channel of each pixel of a copy, in the order of the tile. The
/// pixels go through the bounding box from `start` on, the innermost dimension
/// first and image by image; `offsets`, one for each dimension of the box, are
/// added to where they stand.
std::vector<BoxIndex> pixelsOf(const TensorMap &map, const BoxIndex &start,
                               const std::vector<std::int64_t> &offsets);

} // namespace kiln::sim
