// ladder: the ten products for Blackwell, so that the tests run the same ones,
// and what their launchers share.
//
//     D[m, n] = A[m, k] * B[n, k]^T      f16 * f16 into f32, rounded to f16
//
// They are simulated and assembled, and were not run on hardware: nobody here
// has such a GPU.
#pragma once

#include <kiln/kiln.h>

namespace ladder {

/// Multiples of the lesson's tile.
struct Shape {
  int m = 0, n = 0, k = 0;
};

/// What one CTA computes at a time.
inline constexpr int kTileM = 128, kTileN = 128, kTileK = 64;
/// Columns that go out at once, and columns of tensor memory that are loaded at
/// once. Both can be any that divide kTileN.
inline constexpr int kEpilogueN = 64, kLoadN = 8;

kiln::Module one_tile();                    ///< 128x128x64
kiln::Module k_loop(int k);                 ///< 128x128xk
kiln::Module many_ctas(const Shape &shape); ///< a CTA for each tile
kiln::Module tma(const Shape &shape);       ///< copies by TMA
kiln::Module software_pipeline(const Shape &shape);
/// `ctas` at most; 0: as many as the device has multiprocessors.
kiln::Module persistent(const Shape &shape, int ctas = 0);
kiln::Module warp_specialized(const Shape &shape, int ctas = 0);
kiln::Module deep_pipeline(const Shape &shape, int ctas = 0);
kiln::Module cta_pair(const Shape &shape, int ctas = 0);      ///< 256x256
kiln::Module two_consumers(const Shape &shape, int ctas = 0); ///< 512x256

/// Compile, run and compare every element with the host; what `main` returns.
/// On the simulator, but for a machine with such a GPU.
int launch(const kiln::Module &module, const Shape &shape);

} // namespace ladder
