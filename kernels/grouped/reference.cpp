// reference: what the groups should have given.
#include <kiln/kernels/grouped_gemm.h>

#include <kiln/measure/reference.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>

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

/// Some of `count` numbers, spread over all of them.
std::vector<std::int64_t> spread(std::int64_t count, std::int64_t most) {
  most = std::clamp<std::int64_t>(most, 1, count);
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 0; i < most; ++i)
    numbers.push_back(most == 1 ? 0 : i * (count - 1) / (most - 1));
  return numbers;
}

double silu(double x) { return x / (1 + std::exp(-x)); }

/// What has been compared so far.
class Grouped {
public:
  Grouped(const GroupedGemmProblem &problem, const GroupedOperands &operands,
          const void *d, std::uint8_t poison)
      : problem_(problem), operands_(operands),
        a_(static_cast<const std::byte *>(operands.a)),
        b_(static_cast<const std::byte *>(operands.b)),
        d_(static_cast<const std::byte *>(d)), poison_(poison),
        line_(static_cast<std::int64_t>(problem.k) * size_bytes(problem.type)),
        line_d_(static_cast<std::int64_t>(problem.n) *
                size_bytes(problem.out)) {}

  void compare(int group, std::int64_t row, int rows, std::int64_t most) {
    // As many rows as columns, where they are too many.
    double products = double(rows) * double(problem_.b_rows()) * problem_.k;
    double part = std::min(1.0, std::sqrt(double(most) / products));
    auto count = [&](int all) {
      return static_cast<std::int64_t>(std::ceil(all * part));
    };
    rows_ = spread(rows, count(rows));
    columns_ = spread(problem_.n, count(problem_.n));
    result.is_sampled |= part < 1;
    Sums gate = sums_of(group, 0, row), up;
    if (problem_.is_swiglu)
      up = sums_of(group, 1, row);
    for (std::size_t i = 0; i < gate.value.size(); ++i) {
      double want = gate.value[i], tolerance = gate.tolerance[i];
      double scale = gate.magnitude[i];
      if (problem_.is_swiglu) { // |silu'| is at most 1.1
        double factor = std::abs(up.value[i]), open = silu(gate.value[i]);
        tolerance = 1.1 * factor * tolerance +
                    std::abs(open) * (up.tolerance[i] + 0x1p-20 * factor);
        scale = 1.1 * factor * scale + std::abs(open) * up.magnitude[i];
        want = open * up.value[i];
      }
      check(group, row, i, want, tolerance + rounding(want), scale);
    }
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
  /// Where rows_ and columns_ cross.
  struct Sums {
    std::vector<double> value, magnitude, tolerance;
  };

  /// Of one half of B, with the factors.
  Sums sums_of(int group, int half, std::int64_t row) const {
    std::size_t count = rows_.size() * columns_.size();
    Sums sums{std::vector<double>(count), std::vector<double>(count),
              std::vector<double>(count)};
    bool has_scales = problem_.scaling != Scaling::none;
    int step = has_scales ? 128 : problem_.k;
    for (int k = 0; k < problem_.k; k += step) {
      std::int64_t skipped = std::int64_t{k} * size_bytes(problem_.type);
      std::int64_t b_row = group * problem_.b_rows() + half * problem_.n;
      ReferenceGemm part{.m = rows_.back() + 1,
                         .n = problem_.n,
                         .k = std::min(step, problem_.k - k),
                         .type = problem_.type,
                         .out = Type::f32,
                         .lda = problem_.k,
                         .ldb = problem_.k,
                         .a = a_ + row * line_ + skipped,
                         .b = b_ + b_row * line_ + skipped};
      ReferenceProduct product = reference_gemm(part, rows_, columns_);
      for (std::size_t i = 0; i < count; ++i) {
        double factor =
            has_scales ? factor_of(group, half, row, k / 128, i) : 1;
        double magnitude = std::abs(factor) * product.magnitude[i];
        sums.value[i] += factor * product.d[i];
        sums.magnitude[i] += magnitude;
        sums.tolerance[i] +=
            std::abs(factor) *
                gemm_tolerance(part, {.sum = product.d[i],
                                      .magnitude = product.magnitude[i],
                                      .before = product.d[i],
                                      .want = product.d[i]}) +
            0x1p-22 * magnitude;
      }
    }
    return sums;
  }

  double factor_of(int group, int half, std::int64_t row, int block,
                   std::size_t i) const {
    std::int64_t at_row = row + rows_[i / columns_.size()];
    std::int64_t column = columns_[i % columns_.size()];
    std::int64_t of_b =
        (std::int64_t{group} * problem_.halves() + half) * problem_.n_blocks() +
        column / 128;
    return double(operands_.a_scales[block * problem_.stored_rows() + at_row]) *
           operands_.b_scales[of_b * problem_.k_blocks() + block];
  }

  /// Half a unit in the last place of what D holds.
  double rounding(double want) const {
    double unit = problem_.out == Type::bf16  ? 0x1p-8
                  : problem_.out == Type::f16 ? 0x1p-11
                                              : 0x1p-24;
    double least = problem_.out == Type::f16 ? 0x1p-25 : 0;
    return std::max(1.01 * unit * std::abs(want), least);
  }

  void check(int group, std::int64_t row, std::size_t i, double want,
             double tolerance, double scale) {
    std::int64_t at_row = rows_[i / columns_.size()];
    std::int64_t column = columns_[i % columns_.size()];
    int bytes = size_bytes(problem_.out);
    std::uint64_t bits = 0;
    std::memcpy(&bits, d_ + (row + at_row) * line_d_ + column * bytes, bytes);
    double got = from_bits(problem_.out, bits), error = std::abs(got - want);
    ++result.compared;
    result.max_rel_err =
        std::max(result.max_rel_err, std::isnan(error) ? INFINITY
                                     : error == 0      ? 0
                                                       : error / scale);
    if (error <= tolerance)
      return;
    ++result.wrong;
    if (result.first_wrong.empty())
      result.first_wrong =
          fmt::format("row {}, column {} of group {} is {}, expected {}",
                      at_row, column, group, got, want);
  }

  const GroupedGemmProblem &problem_;
  const GroupedOperands &operands_;
  const std::byte *a_, *b_, *d_;
  std::uint8_t poison_;
  std::int64_t line_, line_d_; ///< bytes of a row of A and B, and of D
  std::vector<std::int64_t> rows_, columns_; ///< those that are compared
};

} // namespace

GroupedComparison compare_grouped_gemm(const GroupedGemmProblem &problem,
                                       std::span<const int> group_rows,
                                       const GroupedOperands &operands,
                                       const void *d, std::uint8_t poison,
                                       std::int64_t max_products) {
  Grouped grouped(problem, operands, d, poison);
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
