// problem: what attention is asked for.
#include <kiln/kernels/attention.h>

#include <kiln/base/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kiln {

AttentionProblem AttentionProblem::resolved() const {
  AttentionProblem known = *this;
  if (known.kv_heads == 0)
    known.kv_heads = heads;
  if (known.scale == 0)
    known.scale = 1 / std::sqrt(static_cast<double>(head_dim));
  if (is_causal && window_right > 0)
    throw UserError(fmt::format("a causal mask with a window of {} keys behind "
                                "a query; use one of them",
                                window_right));
  if (is_causal)
    known.window_right = 0;
  if (window_left < -1 || window_right < -1)
    throw UserError(fmt::format("a window of {} keys before and {} behind a "
                                "query; use 0 or more, or -1 for all",
                                window_left, window_right));
  if (!(soft_cap >= 0) || std::isinf(soft_cap))
    throw UserError(fmt::format("scores capped at {}; use a number greater "
                                "than 0, or 0 for none",
                                soft_cap));
  if (is_packed() && (total_queries < queries || total_keys < keys))
    throw UserError(fmt::format(
        "packed sequences of {} queries and {} keys in all; the longest ones "
        "have {} and {}",
        total_queries, total_keys, queries, keys));
  for (auto [what, count] :
       {std::pair{"sequences", batch}, std::pair{"heads", heads},
        std::pair{"key heads", known.kv_heads}, std::pair{"queries", queries},
        std::pair{"keys", keys}})
    if (count < 1)
      throw UserError(fmt::format("attention with {} {}; at least 1 is needed",
                                  count, what));
  if (heads % known.kv_heads)
    throw UserError(fmt::format("{} heads cannot share {} key heads evenly; "
                                "use a divisor of {}",
                                heads, known.kv_heads, heads));
  if (head_dim != 64 && head_dim != 128 && head_dim != 256)
    throw UserError(fmt::format(
        "a head dimension of {}; attention takes 64, 128 and 256", head_dim));
  if (type != Type::bf16 && type != Type::f16)
    throw UserError(
        fmt::format("attention of bf16 or f16, not of {}", name(type)));
  if (!(known.scale > 0) || std::isinf(known.scale))
    throw UserError(fmt::format(
        "scores scaled by {}; use a number greater than 0", known.scale));
  if (double(batch) * heads * queries > double(1 << 30) ||
      double(batch) * known.kv_heads * keys > double(1 << 30))
    throw UserError(fmt::format("attention of {} sequences with {} heads of {} "
                                "queries and {} keys is too large to count in "
                                "32 bits",
                                batch, heads, queries, keys));
  return known;
}

bool AttentionProblem::has_mask(int block) const {
  return is_causal || window_left >= 0 || window_right >= 0 || is_packed() ||
         keys % block != 0;
}

std::pair<int, int> AttentionProblem::seen_keys(int query, int of_queries,
                                                int of_keys) const {
  int right = is_causal ? 0 : window_right;
  std::int64_t at = std::int64_t(query) + of_keys - of_queries;
  auto inside = [&](std::int64_t key) {
    return static_cast<int>(std::clamp<std::int64_t>(key, 0, of_keys));
  };
  int first = window_left < 0 ? 0 : inside(at - window_left);
  int end = right < 0 ? of_keys : inside(at + right + 1);
  return {first, std::max(first, end)};
}

double AttentionProblem::operations(const AttentionOffsets &offsets) const {
  double pairs = 0;
  for (int i = 0; i < batch; ++i) {
    int of_queries = queries, of_keys = keys;
    if (is_packed()) {
      of_queries = offsets.queries.at(i + 1) - offsets.queries.at(i);
      of_keys = offsets.keys.at(i + 1) - offsets.keys.at(i);
    }
    for (int query = 0; query < of_queries; ++query) {
      auto [first, end] = seen_keys(query, of_queries, of_keys);
      pairs += end - first;
    }
  }
  return 4.0 * heads * pairs * head_dim;
}

std::string AttentionProblem::to_string() const {
  std::string text =
      fmt::format("{}x{}x{}x{} {}{}", batch, heads, queries, head_dim,
                  name(type), is_causal ? " causal" : "");
  if (kv_heads && kv_heads != heads)
    text += fmt::format(", {} key heads", kv_heads);
  if (keys != queries)
    text += fmt::format(", {} keys", keys);
  if (layout == AttentionLayout::bshd)
    text += ", bshd";
  if (window_left >= 0 || (window_right >= 0 && !is_causal))
    text += fmt::format(", window {} to {}", window_left, window_right);
  if (soft_cap)
    text += fmt::format(", capped at {}", soft_cap);
  if (is_packed())
    text +=
        fmt::format(", packed in {} and {} rows", total_queries, total_keys);
  return text;
}

} // namespace kiln
