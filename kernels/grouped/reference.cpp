// reference: what the groups should have given.
#include <kiln/grouped_gemm.h>

#include <kiln/reference.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace kiln {

std::vector<std::int32_t> row_numbers(const GroupedGemmProblem &problem,
                                      std::span<const int> group_rows) {
  if (problem.layout == GroupLayout::masked)
    return {group_rows.begin(), group_rows.end()};
  std::vector<std::int32_t> offsets = {0};
  for (int rows : group_rows)
    offsets.push_back(offsets.back() + rows);
  return offsets;
}

namespace {

/// What has been compared so far.
class Grouped {
public:
  Grouped(const GroupedGemmProblem &problem, const void *a, const void *b,
          const void *d, std::uint8_t poison)
      : problem_(problem), a_(static_cast<const std::byte *>(a)),
        b_(static_cast<const std::byte *>(b)),
        d_(static_cast<const std::byte *>(d)), poison_(poison),
        line_(static_cast<std::int64_t>(problem.k) * size_bytes(problem.type)),
        line_d_(static_cast<std::int64_t>(problem.n) *
                size_bytes(problem.out)) {}

  void compare(int group, std::int64_t row, int rows, std::int64_t most) {
    Comparison found = compare_gemm({.m = rows,
                                     .n = problem_.n,
                                     .k = problem_.k,
                                     .type = problem_.type,
                                     .out = problem_.out,
                                     .a = a_ + row * line_,
                                     .b = b_ + group * problem_.n * line_},
                                    d_ + row * line_d_, most);
    result.compared += found.compared;
    result.is_sampled |= found.is_sampled;
    result.max_rel_err = std::max(result.max_rel_err, found.max_rel_err);
    if (!found.ok && result.first_wrong.empty() && !found.first.empty())
      result.first_wrong =
          fmt::format("row {}, column {} of group {} is {}, expected {}",
                      found.first[0].row, found.first[0].col, group,
                      found.first[0].got, found.first[0].want);
    result.wrong += found.wrong;
  }

  /// Rows that are no group's.
  void expect_untouched(std::int64_t row, std::int64_t end) {
    const std::byte *first = d_ + row * line_d_, *last = d_ + end * line_d_;
    const std::byte *changed = std::find_if(
        first, last, [&](std::byte b) { return b != std::byte{poison_}; });
    if (changed == last)
      return;
    ++result.wrong;
    if (result.first_wrong.empty())
      result.first_wrong = fmt::format("row {} of D is no group's and was "
                                       "written",
                                       (changed - d_) / line_d_);
  }

  GroupedComparison result;

private:
  const GroupedGemmProblem &problem_;
  const std::byte *a_, *b_, *d_;
  std::uint8_t poison_;
  std::int64_t line_, line_d_; ///< bytes of a row of A and B, and of D
};

} // namespace

GroupedComparison compare_grouped_gemm(const GroupedGemmProblem &problem,
                                       std::span<const int> group_rows,
                                       const void *a, const void *b,
                                       const void *d, std::uint8_t poison,
                                       std::int64_t max_products) {
  Grouped grouped(problem, a, b, d, poison);
  std::int64_t next = 0; // the first row that was not looked at
  for (int group = 0; group < problem.groups; ++group) {
    std::int64_t row = problem.layout == GroupLayout::masked
                           ? std::int64_t{group} * problem.rows
                           : next;
    grouped.expect_untouched(next, row);
    int rows = group_rows[group];
    if (rows > 0)
      grouped.compare(group, row, rows, max_products / problem.groups);
    next = row + rows;
  }
  grouped.expect_untouched(next, problem.stored_rows());
  return grouped.result;
}

} // namespace kiln
