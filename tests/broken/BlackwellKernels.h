// BlackwellKernels: three small products for Blackwell, each right, and each
// with the mistakes people make there.
//
// A mistake is planted by its name, a few words that stand in the kernel where
// it does something else. One that no kernel knows changes nothing, which the
// test takes for a failure.
#pragma once

#include <kiln/kiln.h>

#include <string_view>

namespace kiln::blackwell {

/// The name of a mistake; empty: none.
using Flaw = std::string_view;

/// D[m, n] = A[m, k] * B[n, k]^T, f16, as the kernels are launched.
struct Sizes {
  int m, n, k;
};

/// Threads copy, one multiplies, all store: 128x32x128.
inline constexpr Sizes kThreadsSizes{128, 32, 128};
Module threads(Flaw flaw);

/// One warp loads by TMA, one multiplies, a warpgroup stores by TMA: two tiles
/// of 128x64, three K tiles of two slots each.
inline constexpr Sizes kRolesSizes{256, 64, 192};
Module roles(Flaw flaw);

/// The same by a pair of CTAs, which multiply together: two tiles of 256x64.
inline constexpr Sizes kPairSizes{512, 64, 128};
Module pair(Flaw flaw);

} // namespace kiln::blackwell
