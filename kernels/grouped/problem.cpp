// problem: what a grouped GEMM is asked for.
#include <kiln/grouped_gemm.h>

#include <kiln/error.h>

#include <fmt/format.h>

namespace kiln {

std::int64_t GroupedGemmProblem::stored_rows() const {
  return layout == GroupLayout::masked ? std::int64_t{rows} * groups : rows;
}

int GroupedGemmProblem::row_numbers() const {
  return layout == GroupLayout::masked ? groups : groups + 1;
}

void GroupedGemmProblem::check() const {
  for (auto [what, count] :
       {std::pair{"groups", groups}, std::pair{"rows", rows},
        std::pair{"columns", n}, std::pair{"elements along K", k}})
    if (count < 1)
      throw UserError(fmt::format(
          "a grouped GEMM of {} {}; at least 1 is needed", count, what));
  if (type != Type::bf16 && type != Type::f16)
    throw UserError(
        fmt::format("a grouped GEMM of bf16 or f16, not of {}", name(type)));
  if (out != type && out != Type::f32)
    throw UserError(fmt::format("a grouped GEMM of {} gives {} or f32, not {}",
                                name(type), name(type), name(out)));
  if (k % 8 != 0)
    throw UserError(fmt::format("a grouped GEMM with K = {}; TMA takes rows of "
                                "a multiple of 16 bytes, 8 elements of {}",
                                k, name(type)));
  // Counted in 32 bits, with a tile beyond the last row.
  if (stored_rows() > (1 << 30) || std::int64_t{groups} * n > (1 << 30))
    throw UserError(fmt::format("a grouped GEMM of {} groups of {} rows and {} "
                                "columns is too large to count in 32 bits",
                                groups, rows, n));
}

std::string GroupedGemmProblem::to_string() const {
  return fmt::format("{} groups of {}x{}x{} {} -> {}, {}", groups, rows, n, k,
                     name(type), name(out),
                     layout == GroupLayout::masked ? "masked" : "contiguous");
}

} // namespace kiln
