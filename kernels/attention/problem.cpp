// problem: what attention is asked for.
#include <kiln/attention.h>

#include <kiln/error.h>

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

double AttentionProblem::operations() const {
  double pairs = double(queries) * keys;
  if (is_causal) {
    pairs = 0;
    for (int i = 0; i < queries; ++i)
      pairs += std::clamp(i + 1 + keys - queries, 0, keys);
  }
  return 4.0 * batch * heads * pairs * head_dim;
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
  return text;
}

} // namespace kiln
