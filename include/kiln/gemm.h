// gemm.h: matrix multiplication: the problem, the schedule, the kernel.
//
//     D[M,N] = A[M,K] * B[K,N]
//
// A problem says what is computed, a schedule how; a kernel is built from both.
//
//     Kernel kernel = compile(build_gemm({.m = 4096, .n = 4096, .k = 4096},
//                                        {.kind =
//                                        GemmKind::warp_specialized}));
//     run(device, kernel, a, b, d);
#pragma once

#include <kiln/compile.h>
#include <kiln/dim.h>
#include <kiln/tensor_map.h>
#include <kiln/types.h>

#include <string>

namespace kiln {

/// How A[M,K] and B[K,N] are stored, A then B: t row-major, n column-major.
/// `tn` has both with K contiguous, `tt` has both row-major.
enum class GemmLayout : std::uint8_t { tn, nn, nt, tt };

/// What is computed. Each dimension is a number or a runtime argument
/// (Dim::argument("m")), which the kernel then takes after its tensors.
struct GemmProblem {
  Dim m = 1024, n = 1024, k = 1024;
  Type type = Type::f16; ///< of A and B: f16 or bf16
  Type out = Type::f32;  ///< of D: f32, f16 or bf16
  GemmLayout layout = GemmLayout::tn;

  bool a_is_k_major() const {
    return layout == GemmLayout::tn || layout == GemmLayout::tt;
  }
  bool b_is_k_major() const {
    return layout == GemmLayout::tn || layout == GemmLayout::nn;
  }
  /// "1024x1024x1024 f32 += f16 * f16, tn"
  std::string to_string() const;
};

enum class GemmKind : std::uint8_t {
  multistage,       ///< one warpgroup loads ahead and multiplies
  warp_specialized, ///< one warpgroup loads, another multiplies
};

/// How it is computed.
struct GemmSchedule {
  GemmKind kind = GemmKind::warp_specialized;
  int tile_m = 128, tile_n = 128, tile_k = 64;
  int stages = 4; ///< slots of shared memory; more than K tiles are not used
  int producer_registers = 40, consumer_registers = 232;

  /// "warp-specialized 128x128x64, 4 stages"
  std::string to_string() const;
};

/// The schedule with its stages lowered to the number of K tiles, where K is
/// known. Throws UserError where the stages do not fit into shared memory, with
/// the number that does.
GemmSchedule fit(const GemmProblem &problem, const GemmSchedule &schedule);
/// The most stages that fit into shared memory.
int max_gemm_stages(const GemmProblem &problem, const GemmSchedule &schedule);

/// "warpspecialized_4096x4096x4096_128x128x64_3", with a suffix for each field
/// of the problem that is not the default of the `tt`, f16 to f32 kernel.
std::string gemm_kernel_name(const GemmProblem &problem,
                             const GemmSchedule &schedule);

/// Build the kernel: arguments a, b, d, then the runtime dimensions in the
/// order m, n, k. Throws UserError where problem and schedule do not go
/// together.
Module build_gemm(const GemmProblem &problem, const GemmSchedule &schedule);

std::string_view name(GemmLayout layout);
GemmLayout parse_gemm_layout(std::string_view text);
std::string_view name(GemmKind kind);
GemmKind parse_gemm_kind(std::string_view text);

} // namespace kiln
