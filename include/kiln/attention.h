// attention.h: fused attention, forward.
//
//     O[i] = sum over j of softmax_j(scale * Q[i] . K[j]) V[j]
//     lse[i] = log(sum over j of exp(scale * Q[i] . K[j]))
//
// for each head of each sequence of a batch. Scores never leave the registers.
// Query heads share key heads evenly (grouped or multi-query attention). Under
// the causal mask query i sees the keys up to i + keys - queries: the last
// query sees all of them. A query that sees none gives 0, and an lse of
// -infinity.
//
//     AttentionProblem problem{.batch = 4, .heads = 16, .queries = 4096,
//                              .keys = 4096, .head_dim = 128};
//     Kernel kernel = compile(build_attention(problem));
//     run(device, kernel, q, k, v, o, lse);
#pragma once

#include <kiln/compile.h>
#include <kiln/export.h>
#include <kiln/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace KILN_API kiln {

/// How the dimensions of Q, K, V and O lie in memory, the slowest first.
enum class AttentionLayout : std::uint8_t {
  bhsd, ///< batch, heads, sequence, head dimension
  bshd, ///< batch, sequence, heads, head dimension
};

struct AttentionProblem {
  int batch = 1;
  int heads = 1;
  int kv_heads = 0; ///< of K and V, a divisor of heads; 0: as many
  int queries = 1;  ///< of a sequence
  int keys = 1;
  int head_dim = 128;     ///< 64, 128 or 256
  Type type = Type::bf16; ///< of Q, K, V and O: bf16 or f16
  bool is_causal = false;
  double scale = 0; ///< of the scores; 0: 1 / sqrt(head_dim)
  AttentionLayout layout = AttentionLayout::bhsd;

  /// With what 0 stands for. Throws UserError where it is none that
  /// build_attention solves.
  AttentionProblem resolved() const;
  /// Multiplications and additions of the scores that are not masked, as
  /// benchmarks count them.
  double operations() const;
  /// "4x16x4096x128 bf16 causal, 8 key heads, 5000 keys"
  std::string to_string() const;
};

/// What one CTA does at a time.
struct AttentionSchedule {
  int consumers = 0; ///< warpgroups, of 64 queries each; 0: by head dimension
  int tile_n = 0;    ///< keys of a block; 0: likewise
  int stages = 0;    ///< blocks of K, and of V, in shared memory; 0: likewise
};

/// Arguments: q, k, v, o and lse, an f32 for each query of each head.
Module build_attention(const AttentionProblem &problem,
                       const AttentionSchedule &schedule = {});

/// What one query should give, in double.
struct AttentionRow {
  std::vector<double> o;         ///< head_dim of them
  std::vector<double> magnitude; ///< sum over j of the probability times |V|
  double lse = 0;
};
/// Of query `row`, numbered through batch, head and query.
AttentionRow reference_attention(const AttentionProblem &problem, const void *q,
                                 const void *k, const void *v,
                                 std::int64_t row);

struct AttentionComparison {
  std::int64_t compared = 0; ///< rows looked at
  std::int64_t wrong = 0;    ///< of these
  bool is_sampled = false;   ///< some rows, not all
  /// The largest |got - want| over magnitude; infinite where there is a NaN.
  double max_rel_err = 0;
  double max_lse_err = 0;  ///< likewise, over 1 + |want|
  std::string first_wrong; ///< a sentence; empty: none is

  bool ok() const { return compared > 0 && wrong == 0; }
};
/// Compare O and lse with the reference: each probability and each result is
/// rounded once to the problem's type, and everything else is nearly exact. Of
/// more work than `max_products` multiplications some rows are compared.
AttentionComparison
compare_attention(const AttentionProblem &problem, const void *q, const void *k,
                  const void *v, const void *o, const float *lse,
                  std::int64_t max_products = std::int64_t{1} << 30);

} // namespace kiln
