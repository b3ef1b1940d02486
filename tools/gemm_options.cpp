// gemm_options: from words to a problem and a schedule.
#include "gemm_options.h"

#include <kiln/error.h>

#include <charconv>
#include <fmt/format.h>
#include <optional>

namespace kiln::cli {

/// A whole number from 1 on that a kernel can count to in 32 bits.
static std::optional<int> parse_count(std::string_view text) {
  int value = 0;
  const char *end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || value < 1)
    return std::nullopt;
  return value;
}

void GemmOptions::add_to(CLI::App &command) {
  command.add_option("--type", type, "of A and B: f16 or bf16")
      ->capture_default_str();
  command.add_option("--out", out, "type of D: f32, f16 or bf16")
      ->capture_default_str();
  command
      .add_option("--layout", layout,
                  "of A, then B: t row-major, n column-major")
      ->capture_default_str();
  command
      .add_option("--schedule", schedule_kind, "warp-specialized or multistage")
      ->capture_default_str();
  command.add_option("--tile", tile, "MxNxK of one CTA's step")
      ->capture_default_str();
  command.add_option("--stages", stages, "tiles in flight")
      ->capture_default_str();
  command
      .add_option("--runtime", runtime_dims,
                  "dimensions that are arguments of the kernel: m,n,k")
      ->delimiter(',')
      ->allow_extra_args(false);
}

void add_to(CLI::App &command, AssembleOptions &options) {
  command.add_option("--ptxas", options.ptxas, "the ptxas to assemble with")
      ->check(CLI::ExistingFile);
  command
      .add_option("--allow", options.allow,
                  "a ptxas diagnostic not to fail on, such as C7508")
      ->allow_extra_args(false);
}

GemmProblem GemmOptions::sized_problem() const {
  if (sizes.size() != 3)
    throw UserError(fmt::format("a gemm has three sizes, M N K; there {} {}",
                                sizes.size() == 1 ? "is" : "are",
                                sizes.size()));
  GemmProblem problem;
  Dim *dims[] = {&problem.m, &problem.n, &problem.k};
  for (std::size_t i = 0; i < 3; ++i) {
    std::optional<int> size = parse_count(sizes[i]);
    if (!size)
      throw UserError(fmt::format("{} is '{}'; it must be a whole number from "
                                  "1 to 2147483647",
                                  "MNK"[i], sizes[i]));
    *dims[i] = *size;
  }
  problem.type = parse_type(type);
  problem.out = parse_type(out);
  problem.layout = parse_gemm_layout(layout);
  return problem;
}

GemmProblem GemmOptions::problem() const {
  GemmProblem problem = sized_problem();
  for (const std::string &letter : runtime_dims) {
    if (letter != "m" && letter != "n" && letter != "k")
      throw UserError(fmt::format(
          "'{}' is no dimension; --runtime takes m, n, k or several of them "
          "with commas between",
          letter));
    Dim &dim = letter == "m"   ? problem.m
               : letter == "n" ? problem.n
                               : problem.k;
    dim = Dim::argument(letter);
  }
  return problem;
}

GemmSchedule GemmOptions::schedule() const {
  GemmSchedule schedule;
  schedule.kind = parse_gemm_kind(schedule_kind);
  schedule.stages = stages;
  int *sides[] = {&schedule.tile_m, &schedule.tile_n, &schedule.tile_k};
  std::string_view rest = tile;
  for (std::size_t i = 0; i < 3; ++i) {
    std::size_t length = i == 2 ? rest.size() : rest.find('x');
    std::optional<int> side = parse_count(rest.substr(0, length));
    if (length == std::string_view::npos || !side)
      throw UserError(fmt::format(
          "'{}' is no tile; write MxNxK, for example 128x128x64", tile));
    *sides[i] = *side;
    rest.remove_prefix(std::min(length + 1, rest.size()));
  }
  return schedule;
}

GemmSchedule GemmOptions::fitted_schedule() const {
  fit(sized_problem(), schedule());
  return fit(problem(), schedule());
}

} // namespace kiln::cli
