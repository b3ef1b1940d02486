// grouped_gemm.h: products of several groups of rows in one launch, each group
// with a matrix of its own: the experts of a mixture.
//
//     D[i] = A[i] * B[g]^T     for the rows i of group g
//
// With SwiGLU, the first half of a gated feed-forward layer in one launch, B[g]
// has 2 n rows, the gate's before those of the projection:
//
//     D[i] = silu(A[i] * gate[g]^T) * (A[i] * up[g]^T)
//
// e4m3 can have factors (Scaling::blocks): sums of 128 products are multiplied
// by both and added in f32.
//
// How many rows a group has is known only on the device. Contiguous: the groups
// follow each other in A and D, and `offsets`, groups + 1 numbers that do not
// fall, says where each begins. Masked: each group has room for the same number
// of rows, and `counts` says how many of them are there. Rows that are no
// group's are neither read into a result nor written.
//
//     GroupedGemmProblem problem{.groups = 64, .rows = 16384, .n = 4096,
//                                .k = 2048};
//     Kernel kernel = compile(build_grouped_gemm(problem));
//     run(device, kernel, a, b, offsets, d);
#pragma once

#include <kiln/kernels/fields.h>
#include <kiln/run/compile.h>
#include <kiln/base/export.h>
#include <kiln/language/tensorcore/scaling.h>
#include <kiln/base/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace KILN_API kiln {

/// How the rows of the groups lie in A and D.
enum class GroupLayout : std::uint8_t {
  contiguous, ///< one behind the other: A[rows, k], D[rows, n]
  masked,     ///< in rooms of one size: A[groups, rows, k], D[groups, rows, n]
};

struct GroupedGemmProblem {
  int groups = 1;
  int rows = 1; ///< of all groups at most; masked: of each
  int n = 1, k = 1;
  Type type = Type::bf16; ///< of A and B[groups, n, k]: bf16, f16 or e4m3
  Type out = Type::bf16;  ///< of D: the same, or f32; of e4m3 bf16, f16 or f32
  GroupLayout layout = GroupLayout::contiguous;
  Scaling scaling = Scaling::none; ///< of e4m3: none or blocks
  bool is_swiglu = false;          ///< B[groups, 2, n, k]

  /// Rows of A and D in memory.
  std::int64_t stored_rows() const;
  /// Rows of B of one group.
  std::int64_t b_rows() const { return std::int64_t{n} * halves(); }
  int halves() const { return is_swiglu ? 2 : 1; }
  /// Factors of A, [k_blocks, stored_rows], and of B, [groups, halves,
  /// n_blocks, k_blocks]; each an f32.
  int k_blocks() const { return (k + 127) / 128; }
  int n_blocks() const { return (n + 127) / 128; }
  /// Numbers of `offsets` or `counts`, each an i32.
  int row_numbers() const;
  /// Throws UserError where it is none that build_grouped_gemm solves.
  void check() const;
  /// A row for each field.
  static std::span<const Field<GroupedGemmProblem>> fields();
  /// "64x16384x4096x2048 bf16 -> bf16 contiguous": groups, rows, N and K; then
  /// "scales=blocks swiglu" where they are there.
  std::string to_string() const;
  /// The inverse; a type of D that is left out is that of A and B, of e4m3
  /// bf16. Throws UserError.
  static GroupedGemmProblem parse(const std::string &text);
  /// {"groups": 64, "rows": 16384, "n": 4096, "k": 2048, "type": "bf16", "out":
  /// "bf16", "layout": "contiguous"}, with what the text says beside it.
  std::string to_json() const;
  /// The inverse, likewise. Throws UserError.
  static GroupedGemmProblem from_json(const std::string &text);
  bool operator==(const GroupedGemmProblem &) const = default;
};

/// What one CTA does at a time: a tile of D, divided by two consumers.
struct GroupedGemmSchedule {
  /// Rows of B that 128 rows of A are multiplied with: 64, 128, 192 or 256;
  /// half of them the gate's with SwiGLU, which has 128 or 256; with factors 64
  /// or 128. 0: by n.
  int tile_n = 0;
  int stages = 0; ///< K tiles of 128 bytes in shared memory; 0: all that fit
  int ctas = 0;   ///< 0: one for each multiprocessor

  /// A row for each field.
  static std::span<const Field<GroupedGemmSchedule>> fields();
  /// "tile-n=128 stages=4", without what is 0.
  std::string to_string() const;
  /// The inverse. Throws UserError.
  static GroupedGemmSchedule parse(const std::string &text);
  bool operator==(const GroupedGemmSchedule &) const = default;
};

/// Arguments: a, b, offsets (masked: counts) and d; with factors a_scales and
/// b_scales too.
Module build_grouped_gemm(const GroupedGemmProblem &problem,
                          const GroupedGemmSchedule &schedule = {});

std::string_view name(GroupLayout layout);

/// The numbers of rows of the groups as the kernel reads them: offsets, or the
/// counts themselves.
std::vector<std::int32_t> row_numbers(const GroupedGemmProblem &problem,
                                      std::span<const int> group_rows);

/// What is multiplied, on the host.
struct GroupedOperands {
  const void *a, *b;
  const float *a_scales = nullptr, *b_scales = nullptr; ///< with factors
};

struct GroupedComparison {
  std::int64_t compared = 0; ///< elements looked at
  std::int64_t wrong = 0;    ///< of these, and of rows that are no group's
  bool is_sampled = false;   ///< some elements, not all
  double max_rel_err = 0;    ///< as Comparison has it
  std::string first_wrong;   ///< a sentence; empty: none is

  bool ok() const { return wrong == 0; }
};
/// Compare D, every byte of which was `poison` before, with the reference,
/// group after group. Rows that are no group's must be untouched.
GroupedComparison compare_grouped_gemm(
    const GroupedGemmProblem &problem, std::span<const int> group_rows,
    const GroupedOperands &operands, const void *d, std::uint8_t poison = 0xff,
    std::int64_t max_products = std::int64_t{1} << 33);

} // namespace kiln
