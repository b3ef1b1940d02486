// reference: what attention should give, query by query.
#include <kiln/kernels/attention.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kiln {

namespace {
/// A query, and where it and the keys of its sequence lie.
struct Query {
  int batch, head, row; ///< as the caller names it
  int stored;           ///< sequence of the tensors
  int of_queries, of_keys;
  int stored_row, stored_key; ///< its own, and the first of its keys

  Query(const AttentionProblem &problem, const AttentionOffsets &offsets,
        std::int64_t index) {
    int rows = problem.stored_queries();
    stored = batch = static_cast<int>(index / rows / problem.heads);
    head = static_cast<int>(index / rows % problem.heads);
    stored_row = row = static_cast<int>(index % rows);
    of_queries = problem.queries;
    of_keys = problem.keys;
    stored_key = 0;
    if (!problem.is_packed())
      return;
    const std::vector<std::int32_t> &begins = offsets.queries;
    // Behind the last sequence a row is nobody's.
    auto next = std::upper_bound(begins.begin(), begins.end(), row);
    batch = static_cast<int>(next - begins.begin()) - 1;
    is_nobodys = next == begins.end();
    if (is_nobodys)
      return;
    row -= begins[batch];
    of_queries = begins[batch + 1] - begins[batch];
    of_keys = offsets.keys.at(batch + 1) - offsets.keys.at(batch);
    stored_key = offsets.keys.at(batch);
  }

  bool is_nobodys = false;
};
} // namespace

/// The elements of one row of one head of a tensor.
static const std::uint16_t *row_of(const AttentionProblem &problem,
                                   const void *data, const Query &at, int head,
                                   int heads, int row, int rows) {
  std::int64_t line =
      problem.layout == AttentionLayout::bhsd
          ? (std::int64_t(at.stored) * heads + head) * rows + row
          : (std::int64_t(at.stored) * rows + row) * heads + head;
  return static_cast<const std::uint16_t *>(data) + line * problem.head_dim;
}

/// Of the query itself, in Q or O.
static const std::uint16_t *query_of(const AttentionProblem &problem,
                                     const void *data, const Query &at) {
  int rows = problem.stored_queries();
  return row_of(problem, data, at, at.head, problem.heads, at.stored_row, rows);
}

AttentionRow reference_attention(const AttentionProblem &given, const void *q,
                                 const void *k, const void *v,
                                 std::int64_t index,
                                 const AttentionOffsets &offsets) {
  AttentionProblem problem = given.resolved();
  Query at(problem, offsets, index);
  int d = problem.head_dim;
  AttentionRow result{std::vector<double>(d), std::vector<double>(d),
                      -INFINITY};
  if (at.is_nobodys)
    return result;
  int kv_head = at.head / (problem.heads / problem.kv_heads);
  auto [first, end] = problem.seen_keys(at.row, at.of_queries, at.of_keys);
  int seen = end - first;
  auto number = [&](std::uint16_t bits) {
    return from_bits(problem.type, bits);
  };
  auto line = [&, begin = first + at.stored_key](const void *data, int key) {
    return row_of(problem, data, at, kv_head, problem.kv_heads, begin + key,
                  problem.stored_keys());
  };
  const std::uint16_t *query_bits = query_of(problem, q, at);
  std::vector<double> query(d), scores(seen);
  std::transform(query_bits, query_bits + d, query.begin(), number);
  double largest = -INFINITY, sum = 0;
  for (int j = 0; j < seen; ++j) {
    const std::uint16_t *key = line(k, j);
    for (int i = 0; i < d; ++i)
      scores[j] += query[i] * number(key[i]);
    scores[j] *= problem.scale;
    if (problem.soft_cap)
      scores[j] = problem.soft_cap * std::tanh(scores[j] / problem.soft_cap);
    largest = std::max(largest, scores[j]);
  }
  for (int j = 0; j < seen; ++j)
    sum += std::exp(scores[j] - largest);
  for (int j = 0; j < seen; ++j) {
    double probability = std::exp(scores[j] - largest) / sum;
    const std::uint16_t *value = line(v, j);
    for (int i = 0; i < d; ++i) {
      double term = probability * number(value[i]);
      result.o[i] += term;
      result.magnitude[i] += std::abs(term);
    }
  }
  if (seen)
    result.lse = largest + std::log(sum);
  return result;
}

AttentionComparison
compare_attention(const AttentionProblem &given, const void *q, const void *k,
                  const void *v, const void *o, const float *lse,
                  const AttentionOffsets &offsets, std::int64_t max_products) {
  AttentionProblem problem = given.resolved();
  // Half a unit in the last place of a probability and of a result, and what
  // sums of f32 and the special functions lose.
  double unit = problem.type == Type::bf16 ? 0x1p-8 : 0x1p-11;
  double tolerance = 2 * unit + 0x1p-16;
  std::int64_t rows = std::int64_t(problem.stored_batch()) * problem.heads *
                      problem.stored_queries();
  std::int64_t per_row = 2 * std::int64_t(problem.keys) * problem.head_dim;
  std::int64_t count =
      std::clamp(max_products / per_row, std::int64_t(1), rows);
  AttentionComparison result;
  result.is_sampled = count < rows;
  for (std::int64_t i = 0; i < count; ++i) {
    // Spread over all, the first and the last row among them.
    std::int64_t index = count == 1 ? 0 : i * (rows - 1) / (count - 1);
    Query at(problem, offsets, index);
    if (at.is_nobodys) { // looked at: nothing is expected there
      ++result.compared;
      continue;
    }
    AttentionRow want = reference_attention(problem, q, k, v, index, offsets);
    const std::uint16_t *got = query_of(problem, o, at);
    std::string wrong;
    for (int j = 0; j < problem.head_dim; ++j) {
      double value = from_bits(problem.type, got[j]);
      double error = std::abs(value - want.o[j]);
      double scale = want.magnitude[j];
      bool is_wrong = !(error <= tolerance * scale);
      double relative = std::isnan(error) || (scale == 0 && error > 0)
                            ? INFINITY
                        : scale == 0 ? 0
                                     : error / scale;
      result.max_rel_err = std::max(result.max_rel_err, relative);
      if (is_wrong && wrong.empty())
        wrong = fmt::format("O[{}, {}, {}, {}] is {}, not {}", at.batch,
                            at.head, at.row, j, value, want.o[j]);
    }
    double error = lse[index] == want.lse ? 0
                                          : std::abs(lse[index] - want.lse) /
                                                (1 + std::abs(want.lse));
    if (std::isnan(error))
      error = INFINITY;
    result.max_lse_err = std::max(result.max_lse_err, error);
    if (error > 0x1p-14 && wrong.empty())
      wrong = fmt::format("lse[{}, {}, {}] is {}, not {}", at.batch, at.head,
                          at.row, lse[index], want.lse);
    ++result.compared;
    result.wrong += !wrong.empty();
    if (result.first_wrong.empty())
      result.first_wrong = wrong;
  }
  return result;
}

} // namespace kiln
