// attention.h: fused attention, forward.
//
//     O[i] = sum over j of softmax_j(scale * Q[i] . K[j]) V[j]
//     lse[i] = log(sum over j of exp(scale * Q[i] . K[j]))
//
// for each head of each sequence of a batch. Scores never leave the registers.
// Query heads share key heads evenly (grouped or multi-query attention). Query
// i stands at key i + keys - queries, the last query at the last key. Under the
// causal mask it sees the keys up to there; a sliding window says how many
// before and behind. A query that sees none gives 0, and an lse of -infinity.
//
// Sequences of different lengths are packed one behind the other, without
// padding: `total_queries` rows of Q and O and `total_keys` of K and V. Where
// each begins is known on the device alone: offsets in global memory. (V must
// be finite: what follows a sequence is multiplied by 0.)
//
//     AttentionProblem problem{.batch = 4, .heads = 16, .queries = 4096,
//                              .keys = 4096, .head_dim = 128};
//     Kernel kernel = compile(build_attention(problem));
//     run(device, kernel, q, k, v, o, lse);
#pragma once

#include <kiln/kernels/fields.h>
#include <kiln/run/compile.h>
#include <kiln/base/export.h>
#include <kiln/base/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace KILN_API kiln {

/// How the dimensions of Q, K, V and O lie in memory, the slowest first.
enum class AttentionLayout : std::uint8_t {
  bhsd, ///< batch, heads, sequence, head dimension
  bshd, ///< batch, sequence, heads, head dimension
};

/// Where packed sequences begin in Q and O, and in K and V: as many numbers as
/// sequences and one more, which do not fall, the first of them 0.
struct AttentionOffsets {
  std::vector<std::int32_t> queries, keys;
};

struct AttentionProblem {
  int batch = 1; ///< sequences
  int heads = 1;
  int kv_heads = 0;       ///< of K and V, a divisor of heads; 0: as many
  int queries = 1;        ///< of a sequence; packed: of the longest one
  int keys = 1;           ///< likewise
  int head_dim = 128;     ///< 64, 128 or 256
  Type type = Type::bf16; ///< of Q, K, V and O: bf16 or f16
  bool is_causal = false;
  double scale = 0; ///< of the scores; 0: 1 / sqrt(head_dim)
  AttentionLayout layout = AttentionLayout::bhsd;
  /// Keys that a query sees before and behind its own; -1: all. Causal: the
  /// second is 0.
  int window_left = -1, window_right = -1;
  /// Scores, scaled, become soft_cap * tanh(score / soft_cap); 0: they do not.
  double soft_cap = 0;
  /// Of packed sequences, rows of all; 0: they are not packed. The layouts are
  /// then [heads, rows, head dimension] and [rows, heads, head dimension].
  int total_queries = 0, total_keys = 0;

  /// With what 0 stands for. Throws UserError where it is none that
  /// build_attention solves.
  AttentionProblem resolved() const;
  bool is_packed() const { return total_queries > 0 || total_keys > 0; }
  /// The tensors' own: sequences, and rows of each.
  int stored_batch() const { return is_packed() ? 1 : batch; }
  int stored_queries() const { return is_packed() ? total_queries : queries; }
  int stored_keys() const { return is_packed() ? total_keys : keys; }
  /// Whether blocks of so many keys have some that not all queries see.
  bool has_mask(int block) const;
  /// The keys [first, second) that a query sees, in a sequence of so many.
  std::pair<int, int> seen_keys(int query, int of_queries, int of_keys) const;
  /// Multiplications and additions of the scores that are not masked, as
  /// benchmarks count them. Of packed sequences with their offsets.
  double operations(const AttentionOffsets &offsets = {}) const;
  /// A row for each field.
  static std::span<const Field<AttentionProblem>> fields();
  /// "4x16x8x4096x5000x128 bf16": sequences, heads, key heads, queries, keys and
  /// the head dimension; then a word for each field that is not the default:
  /// "bshd causal window=512,0 soft-cap=50 total-queries=9000 total-keys=9000
  /// scale=0.5".
  std::string to_string() const;
  /// The inverse, but for what `resolved` fills in. Throws UserError.
  static AttentionProblem parse(const std::string &text);
  /// {"batch": 4, "heads": 16, "kv-heads": 8, "queries": 4096, "keys": 5000,
  /// "head-dim": 128, "type": "bf16"}, with what the text says beside it.
  std::string to_json() const;
  /// The inverse, likewise. Throws UserError.
  static AttentionProblem from_json(const std::string &text);
  bool operator==(const AttentionProblem &) const = default;
};

/// What one CTA does at a time.
struct AttentionSchedule {
  int consumers = 0; ///< warpgroups, of 64 queries each; 0: by head dimension
  int tile_n = 0;    ///< keys of a block; 0: likewise
  int stages = 0;    ///< blocks of K, and of V, in shared memory; 0: likewise
  int q_stages = 0;  ///< tiles of Q there; 0: likewise

  /// A row for each field.
  static std::span<const Field<AttentionSchedule>> fields();
  /// "consumers=2 tile-n=128", without what is 0.
  std::string to_string() const;
  /// The inverse. Throws UserError.
  static AttentionSchedule parse(const std::string &text);
  bool operator==(const AttentionSchedule &) const = default;
};

/// Arguments: q, k, v, o and lse, an f32 for each query of each head. Packed:
/// and query_offsets and key_offsets, an i32 each.
Module build_attention(const AttentionProblem &problem,
                       const AttentionSchedule &schedule = {});

std::string_view name(AttentionLayout layout);

/// What one query should give, in double.
struct AttentionRow {
  std::vector<double> o;         ///< head_dim of them
  std::vector<double> magnitude; ///< sum over j of the probability times |V|
  double lse = 0;
};
/// Of query `row`, numbered through batch, head and query; packed: through head
/// and query.
AttentionRow reference_attention(const AttentionProblem &problem, const void *q,
                                 const void *k, const void *v, std::int64_t row,
                                 const AttentionOffsets &offsets = {});

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
                  const AttentionOffsets &offsets = {},
                  std::int64_t max_products = std::int64_t{1} << 30);

} // namespace kiln
