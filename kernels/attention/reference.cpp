// reference: what attention should give, query by query.
#include <kiln/attention.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kiln {

namespace {
/// A query by its place.
struct Query {
  int batch, head, row;

  Query(const AttentionProblem &problem, std::int64_t index)
      : batch(static_cast<int>(index / problem.queries / problem.heads)),
        head(static_cast<int>(index / problem.queries % problem.heads)),
        row(static_cast<int>(index % problem.queries)) {}
};
} // namespace

/// The elements of row `row` of one head, of `rows` and of `heads`.
static const std::uint16_t *row_of(const AttentionProblem &problem,
                                   const void *data, int batch, int head,
                                   int heads, int row, int rows) {
  std::int64_t line = problem.layout == AttentionLayout::bhsd
                          ? (std::int64_t(batch) * heads + head) * rows + row
                          : (std::int64_t(batch) * rows + row) * heads + head;
  return static_cast<const std::uint16_t *>(data) + line * problem.head_dim;
}

AttentionRow reference_attention(const AttentionProblem &given, const void *q,
                                 const void *k, const void *v,
                                 std::int64_t index) {
  AttentionProblem problem = given.resolved();
  Query at(problem, index);
  int d = problem.head_dim;
  int kv_head = at.head / (problem.heads / problem.kv_heads);
  int seen = problem.is_causal
                 ? std::clamp(at.row + 1 + problem.keys - problem.queries, 0,
                              problem.keys)
                 : problem.keys;
  auto number = [&](std::uint16_t bits) {
    return from_bits(problem.type, bits);
  };
  auto line = [&](const void *data, int row) {
    return row_of(problem, data, at.batch, kv_head, problem.kv_heads, row,
                  problem.keys);
  };
  const std::uint16_t *query_bits = row_of(
      problem, q, at.batch, at.head, problem.heads, at.row, problem.queries);
  std::vector<double> query(d), scores(seen);
  std::transform(query_bits, query_bits + d, query.begin(), number);
  AttentionRow result{std::vector<double>(d), std::vector<double>(d),
                      -INFINITY};
  double largest = -INFINITY, sum = 0;
  for (int j = 0; j < seen; ++j) {
    const std::uint16_t *key = line(k, j);
    for (int i = 0; i < d; ++i)
      scores[j] += query[i] * number(key[i]);
    scores[j] *= problem.scale;
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

AttentionComparison compare_attention(const AttentionProblem &given,
                                      const void *q, const void *k,
                                      const void *v, const void *o,
                                      const float *lse,
                                      std::int64_t max_products) {
  AttentionProblem problem = given.resolved();
  // Half a unit in the last place of a probability and of a result, and what
  // sums of f32 and the special functions lose.
  double unit = problem.type == Type::bf16 ? 0x1p-8 : 0x1p-11;
  double tolerance = 2 * unit + 0x1p-16;
  std::int64_t rows =
      std::int64_t(problem.batch) * problem.heads * problem.queries;
  std::int64_t per_row = 2 * std::int64_t(problem.keys) * problem.head_dim;
  std::int64_t count =
      std::clamp(max_products / per_row, std::int64_t(1), rows);
  AttentionComparison result;
  result.is_sampled = count < rows;
  for (std::int64_t i = 0; i < count; ++i) {
    // Spread over all, the first and the last row among them.
    std::int64_t index = count == 1 ? 0 : i * (rows - 1) / (count - 1);
    Query at(problem, index);
    AttentionRow want = reference_attention(problem, q, k, v, index);
    const std::uint16_t *got = row_of(problem, o, at.batch, at.head,
                                      problem.heads, at.row, problem.queries);
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
