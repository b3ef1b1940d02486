// random.h: numbers to fill arrays with, the same on every machine.
#pragma once

#include <kiln/base/export.h>
#include <kiln/base/types.h>

#include <cstddef>
#include <cstdint>

namespace KILN_API kiln {

/// Element i is SplitMix64 of `seed` and i, uniform in [lo, hi), rounded to the
/// type; integers include hi. Throws UserError where lo is above hi.
void fill_random(Type type, void *data, std::size_t count, std::uint64_t seed,
                 double lo = -1, double hi = 1);

/// Element i is normally distributed, mean 0 and deviation 1, in 65536 steps;
/// integers are uniform over their whole range. Much faster than fill_random.
void fill_normal(Type type, void *data, std::size_t count, std::uint64_t seed);

} // namespace kiln
