// problem: what a query sees, and what that costs.
#include <kiln/kernels/attention.h>

#include <algorithm>

namespace kiln {

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

} // namespace kiln
