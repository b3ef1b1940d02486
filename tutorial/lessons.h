// lessons: the kernels of the tutorial, so that the tests run the same ones,
// and what their launchers share.
#pragma once

#include <kiln/kiln.h>

#include <cstdio>
#include <memory>

namespace lessons {

kiln::Module hello_world();
kiln::Module saxpy();
kiln::Module saxpy_tma();

/// D[m, n] = A[m, k] * B[k, n] of f16 into f32, all row-major. TMA wants rows
/// of 16 bytes: n and k are multiples of 8.
struct GemmShape {
  int m = 0, n = 0, k = 0;
};

/// Of 128x128x64.
kiln::Module gemm_one_tile();
/// `stages` slots of shared memory, 2 or more.
kiln::Module gemm_multistage(const GemmShape &shape, int stages = 3);
kiln::Module gemm_warp_specialized(const GemmShape &shape, int stages = 4);
/// `ctas` at most; 0: as many as the device holds at once.
kiln::Module gemm_pingpong(const GemmShape &shape, int stages = 4,
                           int ctas = 0);
kiln::Module gemm_multicast(const GemmShape &shape, int stages = 4,
                            int ctas = 0);

/// The ways of lesson 8 to multiply.
struct WgmmaOptions {
  int tile_m = 128, tile_n = 256, tile_k = 64;
  int warpgroups = 2;    ///< that share the tile, 1 or 2
  int instruction_n = 0; ///< columns of one wgmma; 0: as many as fit
  bool is_a_in_registers = false;
  bool is_b_transposed = false; ///< B is stored [n, k]
  bool starts_from_c = false;   ///< D = A * B + C, an argument before D
  bool keeps_one_in_flight = true;
};
kiln::Module gemm_wgmma(const GemmShape &shape, const WgmmaOptions &options);

/// O = softmax(Q K^T / 8) V of f16, [heads, sequence, 64].
struct AttentionShape {
  int heads = 0, queries = 0, keys = 0;
};
/// `overlaps`: a product is in flight under the softmax.
kiln::Module attention(const AttentionShape &shape, bool overlaps);

/// Run either saxpy on random numbers and compare with the host; defined in
/// lesson 1. What `main` should return.
int launch_saxpy(const kiln::Kernel &kernel);

/// How the arguments of a product differ from GemmShape's.
struct GemmOperands {
  bool is_b_transposed = false, has_c = false;
};
/// Multiply random matrices and compare every element with the host. On the
/// simulator the timeline of the first CTA is printed; on the GPU the time of a
/// launch. What `main` should return.
int launch_gemm(kiln::Device &device, const kiln::Kernel &kernel,
                const GemmShape &shape, const GemmOperands &operands = {});

/// Attention of random numbers; some rows are compared with the host.
int launch_attention(kiln::Device &device, const kiln::Kernel &kernel,
                     const AttentionShape &shape);

/// The GPU where there is one, else the simulator.
std::shared_ptr<kiln::Device> open_device();
/// The simulator runs lessons in small: it takes a second for what a GPU does
/// in a microsecond.
bool is_simulator(const kiln::Device &device);

/// Show what the simulator found; true where the launch is right.
bool is_clean(const kiln::LaunchResult &result);

/// Say what was compiled.
void describe(const kiln::Kernel &kernel);

} // namespace lessons
