// gemm.h: matrix multiplication: the problem, the schedule, the kernel.
//
//     D[M,N] = act(alpha * A[M,K] * B[K,N] + beta * C[M,N] + bias)
//
// A problem says what is computed, a schedule how; a kernel is built from both.
//
//     GemmProblem problem{.m = 4096, .n = 4096, .k = 4096};
//     Kernel kernel = compile(build_gemm(problem, pick_schedule(problem)));
//     run(device, kernel, a, b, d);
//
// Every dimension is a number or a runtime argument (Dim::argument("m")): one
// kernel is then right for every value of it.
#pragma once

#include <kiln/run/compile.h>
#include <kiln/run/device_description.h>
#include <kiln/base/dim.h>
#include <kiln/base/export.h>
#include <kiln/kernels/fields.h>
#include <kiln/language/tensorcore/scaling.h>
#include <kiln/language/memory/tensor_map.h>
#include <kiln/language/collective/tile_scheduler.h>
#include <kiln/base/types.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace KILN_API kiln {

/// How A[M,K] and B[K,N] are stored, A then B: t row-major, n column-major.
/// `tn` has both with K contiguous, `tt` has both row-major.
enum class GemmLayout : std::uint8_t { tn, nn, nt, tt };

/// A vector that is added: one number for each row of D, or for each column.
enum class GemmBias : std::uint8_t { none, row, column };

/// What is done to each element last. gelu is its tanh form.
enum class Activation : std::uint8_t { none, relu, gelu, silu };

/// What is computed.
///
///     A and B   f16, bf16, tf32 (f32 in memory, rounded), e4m3, e5m2, i8, u8
///     sums      f32; f16 too of f16, e4m3 and e5m2; i32 of i8 and u8
///     D         f32, f16, bf16, e4m3; i32 and f32 of i8 and u8
///     layouts   all four of f16 and bf16; tn of the others
///     scaling   tensor of e4m3 and e5m2; blocks of e4m3, on Hopper; mx of
///               e4m3, e5m2, e2m3, e3m2 and e2m1, nv of e2m1, on Blackwell;
///               sums in f32
///
/// e2m3 and e3m2 are of Blackwell too, and e2m1 needs a scaling; their rows are
/// a multiple of 16 bytes.
struct GemmProblem {
  Dim m = 1024, n = 1024, k = 1024;
  Dim batch = 1;         ///< products, one behind the other if not said
  Type type = Type::f16; ///< of A and B
  Type out = Type::f32;  ///< of D, and of C
  GemmLayout layout = GemmLayout::tn;
  bool is_d_column_major = false; ///< C too
  /// Of the sums; left out: i32 of i8 and u8, else f32.
  std::optional<Type> accumulate = {};
  /// Elements from one row (or column, as stored) to the next; left out: no
  /// gap. Where they do not suit TMA (16 bytes), threads copy instead.
  std::optional<Dim> lda = {}, ldb = {}, ldc = {}, ldd = {};
  /// Elements from one product of a batch to the next; left out: no gap. Those
  /// of A, B and C may overlap, and 0 is one matrix for all products; those of
  /// D lie one behind the other, or side by side in its rows.
  std::optional<Dim> batch_stride_a = {}, batch_stride_b = {},
                     batch_stride_c = {}, batch_stride_d = {};
  /// alpha and beta are numbers given at launch; without, 1 and 0.
  bool has_alpha = false, has_beta = false;
  GemmBias bias = GemmBias::none; ///< a vector of the type of D; f32 for e4m3
  Activation act = Activation::none;
  Scaling scaling = Scaling::none; ///< factors of A and B

  bool a_is_k_major() const {
    return layout == GemmLayout::tn || layout == GemmLayout::tt;
  }
  bool b_is_k_major() const {
    return layout == GemmLayout::tn || layout == GemmLayout::nn;
  }
  Type accumulator() const;
  Type bias_type() const { return out == Type::e4m3 ? Type::f32 : out; }
  /// Rows of A, B, C and D as stored: elements from one to the next.
  Dim stride_a() const, stride_b() const, stride_c() const, stride_d() const;
  /// Elements from one product to the next.
  Dim product_stride_a() const, product_stride_b() const;
  Dim product_stride_c() const, product_stride_d() const;

  /// A row for each field.
  static std::span<const Field<GemmProblem>> fields();
  /// "1024x1024x1024 f16 -> f32 tn", then a word for each field that is not the
  /// default: "batch=4 acc=f16 lda=1032 stride-b=0 d=column alpha beta bias=row
  /// act=relu scales=mx".
  std::string to_string() const;
  /// The inverse. Throws UserError.
  static GemmProblem parse(const std::string &text);
  /// The same of a text whose sizes are new, and which leaves out what is as in
  /// this problem.
  GemmProblem with(const std::string &text) const;
  /// {"m": 1024, "n": 1024, "k": 1024, "type": "f16", "out": "f32", "layout":
  /// "tn"}, with what the text says beside it.
  std::string to_json() const;
  /// The inverse. Throws UserError.
  static GemmProblem from_json(const std::string &text);
  bool operator==(const GemmProblem &) const = default;
};

enum class GemmKind : std::uint8_t {
  multistage,       ///< who loads ahead multiplies: one warpgroup on Hopper,
                    ///< all threads where there is no TMA (Ampere, Ada)
  warp_specialized, ///< one warpgroup loads, others multiply one tile
  cooperative,      ///< the same, persistent: tile after tile
  pingpong,         ///< persistent; two consumers take tiles in turn, so that
                    ///< one multiplies while the other stores
  vector, ///< one row or column of D: threads multiply, a warp for each element
};

/// Which side of the tile two consumers divide.
enum class GemmSplit : std::uint8_t { m, n };

/// How it is computed. 0 stands for what fits the rest best (`fit`).
///
/// On Blackwell one thread multiplies, into tensor memory, and consumers are
/// the warpgroups that store: each has 128 rows, and sums of its own. So a
/// pingpong schedule has two accumulators there, and the sums of one tile are
/// stored while those of the next are added up.
struct GemmSchedule {
  GemmKind kind = GemmKind::warp_specialized;
  int tile_m = 128, tile_n = 128, tile_k = 64;
  int stages = 4; ///< slots of shared memory; no more than a CTA has K tiles
  int instruction_n = 0; ///< of one instruction; 0: all a consumer has
  int consumers = 0;     ///< warpgroups that multiply; 0: 2 of cooperative and
                         ///< pingpong, else 1
  GemmSplit split = GemmSplit::m;
  bool is_a_in_registers = false; ///< A goes through registers to wgmma
  Swizzle swizzle = Swizzle::b128;
  int cluster_m = 1, cluster_n = 1; ///< tiles of a cluster
  /// CTAs that share one tile and divide K: each adds up its part, then all of
  /// them the parts, in the order of their ranks. Of warp_specialized.
  int split_k = 1;
  /// They are those of a cluster, 8 at most, and read each other's shared
  /// memory; or any of the grid, up to 128, through a workspace.
  bool is_split_by_grid = false;
  /// Compute the transpose, so that N is cut into pieces of 64 and M into those
  /// of wgmma's 8: for few rows.
  bool is_swapped = false;
  /// Copy an operand whose rows TMA cannot take into a workspace first, where
  /// it can: the CTAs copy, wait for what others copy, and multiply. Of sizes
  /// that are known.
  bool is_repacked = false;
  /// CTAs that multiply together, on Blackwell: of 2, above each other in a
  /// cluster of 2x1, each loads half of B.
  int cta_group = 1;
  bool is_multicast = true; ///< CTAs of a cluster load what they share once
  Raster raster = Raster::along_n;
  int raster_group = 8;
  int ctas = 0;      ///< of a persistent kernel; 0: as many as fit
  int occupancy = 1; ///< CTAs per multiprocessor
  /// What goes out at once, per consumer; 0: 64 rows by 128 bytes.
  int epilogue_m = 0, epilogue_n = 0;
  int producer_registers = 0, consumer_registers = 0; ///< 0: what fits

  bool is_persistent() const {
    return kind == GemmKind::cooperative || kind == GemmKind::pingpong;
  }
  int cluster_ctas() const {
    return cluster_m * cluster_n * (is_split_by_grid ? 1 : split_k);
  }
  /// What one consumer has of a tile; of pingpong, all of it.
  int consumer_rows() const {
    bool is_split = split == GemmSplit::m && kind != GemmKind::pingpong;
    return is_split && consumers ? tile_m / consumers : tile_m;
  }
  int consumer_columns() const {
    bool is_split = split == GemmSplit::n && kind != GemmKind::pingpong;
    return is_split && consumers ? tile_n / consumers : tile_n;
  }
  /// A row for each field but kind and tile.
  static std::span<const Field<GemmSchedule>> fields();
  /// The same with every field that `fit` fills in left open again: for one
  /// that is going to be changed.
  GemmSchedule reopened() const;
  /// "warp-specialized 128x128x64 stages=4", then a word for each field that is
  /// not the default: "consumers=2 cluster=2x1 raster=m".
  std::string to_string() const;
  /// The inverse. Throws UserError.
  static GemmSchedule parse(const std::string &text);
  /// The same of a text that leaves out what is as in this schedule.
  GemmSchedule with(const std::string &text) const;
  bool operator==(const GemmSchedule &) const = default;
};

/// The schedule with what was left open filled in, and its stages lowered to
/// the number of K tiles of a CTA, where it is known. Throws UserError where
/// problem and schedule do not go together, or the stages do not fit into
/// shared memory, with the number that does.
GemmSchedule fit(const GemmProblem &problem, const GemmSchedule &schedule,
                 const DeviceDescription &device = DeviceDescription::h200());
/// The most stages that fit into shared memory.
int max_gemm_stages(
    const GemmProblem &problem, const GemmSchedule &schedule,
    const DeviceDescription &device = DeviceDescription::h200());
/// A schedule that suits the problem on that device, already fitted: one that
/// was measured (tuning.h, and the table that ships), else the first of
/// rank_schedules.
GemmSchedule
pick_schedule(const GemmProblem &problem,
              const DeviceDescription &device = DeviceDescription::h200());

/// How long a schedule takes, as predicted from a few numbers, in microseconds.
struct GemmCost {
  double launch_us = 0; ///< of the grid, and of clusters
  double repack_us = 0; ///< of copies that are made first
  double tiles_us = 0;  ///< all rounds of tiles: fill, multiply, store
  double memory_us = 0; ///< the bytes over the bus, beside the tiles
  double store_us = 0;  ///< of the last tiles, when nothing is loaded
  double total_us() const;
};
struct RankedSchedule {
  GemmSchedule schedule; ///< fitted
  GemmCost cost;
};
/// The schedules that are predicted to be fastest, at most `most`, best first.
/// Throws UserError where there is none.
std::vector<RankedSchedule>
rank_schedules(const GemmProblem &problem, int most,
               const DeviceDescription &device = DeviceDescription::h200());

/// Schedules that differ from a fitted one in a single thing (and in what
/// follows from it: stages, registers, the epilogue's tile), with what they are
/// predicted to take: to measure what lies around the fastest known.
std::vector<RankedSchedule>
nearby_schedules(const GemmProblem &problem, const GemmSchedule &schedule,
                 const DeviceDescription &device = DeviceDescription::h200());

/// "warpspecialized_4096x4096x4096_128x128x64_3" for f16 to f32 in `tt`;
/// otherwise with a suffix for each field that is not the default, so that
/// different kernels have different names.
std::string
gemm_kernel_name(const GemmProblem &problem, const GemmSchedule &schedule,
                 const DeviceDescription &device = DeviceDescription::h200());

/// What is built into a kernel to watch it.
struct GemmDebug {
  /// Each role prints what it waits for, loads and multiplies
  /// (KernelOptions::debug_print): multistage and warp_specialized alone.
  bool is_traced = false;
};

/// Build the kernel. Arguments, in this order: a, b, a_scales and b_scales
/// (with a scaling), c (with beta), bias (if any), d, alpha and beta (f32, if
/// any), then the runtime dimensions in the order m, n, k, batch, then
/// workspaces where operands are repacked or the grid divides K. It is
/// compiled for the target of `device`. Throws UserError where problem,
/// schedule and device do not go together.
Module build_gemm(const GemmProblem &problem, const GemmSchedule &schedule,
                  const GemmDebug &debug = {},
                  const DeviceDescription &device = DeviceDescription::h200());

std::string_view name(GemmLayout layout);
GemmLayout parse_gemm_layout(std::string_view text);
std::string_view name(GemmKind kind);
GemmKind parse_gemm_kind(std::string_view text);
std::string_view name(GemmBias bias);
GemmBias parse_gemm_bias(std::string_view text);
std::string_view name(Activation act);
Activation parse_activation(std::string_view text);

} // namespace kiln
