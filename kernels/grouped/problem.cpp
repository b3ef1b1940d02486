// problem: what a grouped GEMM is asked for.
#include <kiln/kernels/grouped_gemm.h>

#include <kiln/base/error.h>

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
  bool is_fp8 = type == Type::e4m3;
  if (type != Type::bf16 && type != Type::f16 && !is_fp8)
    throw UserError(fmt::format(
        "a grouped GEMM of bf16, f16 or e4m3, not of {}", name(type)));
  bool is_half = out == Type::bf16 || out == Type::f16;
  if (out != Type::f32 && !(is_fp8 ? is_half : out == type))
    throw UserError(fmt::format("a grouped GEMM of {} gives {} or f32, not {}",
                                name(type), is_fp8 ? "bf16, f16" : name(type),
                                name(out)));
  if (scaling != Scaling::none && scaling != Scaling::blocks)
    throw UserError(fmt::format("a grouped GEMM with scales={}; use none or "
                                "blocks",
                                name(scaling)));
  if (scaling != Scaling::none && !is_fp8)
    throw UserError(
        fmt::format("factors of blocks of {}; e4m3 has them", name(type)));
  int least = 16 / size_bytes(type);
  if (k % least != 0)
    throw UserError(fmt::format("a grouped GEMM with K = {}; TMA takes rows of "
                                "a multiple of 16 bytes, {} elements of {}",
                                k, least, name(type)));
  // Counted in 32 bits, with a tile beyond the last row.
  if (stored_rows() > (1 << 30) || groups * b_rows() > (1 << 30))
    throw UserError(fmt::format("a grouped GEMM of {} groups of {} rows and {} "
                                "columns is too large to count in 32 bits",
                                groups, rows, n));
}

std::string GroupedGemmProblem::to_string() const {
  return fmt::format("{} groups of {}x{}x{} {} -> {}, {}{}{}", groups, rows, n,
                     k, name(type), name(out),
                     layout == GroupLayout::masked ? "masked" : "contiguous",
                     scaling == Scaling::blocks ? ", factors of blocks" : "",
                     is_swiglu ? ", SwiGLU" : "");
}

} // namespace kiln
