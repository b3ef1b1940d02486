// FillRandom: one number of those that arrays are filled with.
#pragma once

#include "kiln/base/export.h"
#include "kiln/base/random.h"

namespace KILN_API kiln {

/// Uniform in [0, 1): the i-th number of SplitMix64 from `seed` on.
double unitRandom(std::uint64_t seed, std::uint64_t i);

} // namespace kiln
