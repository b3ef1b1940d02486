// gemm: problem and schedule: their words, their checks, the kernel they give.
#include "operands.h"

#include <kiln/error.h>

#include <fmt/format.h>

namespace kiln {

static constexpr std::pair<GemmLayout, std::string_view> kLayouts[] = {
    {GemmLayout::tn, "tn"},
    {GemmLayout::nn, "nn"},
    {GemmLayout::nt, "nt"},
    {GemmLayout::tt, "tt"}};

static constexpr std::pair<GemmKind, std::string_view> kKinds[] = {
    {GemmKind::multistage, "multistage"},
    {GemmKind::warp_specialized, "warp-specialized"}};

template <typename Table, typename Key>
static std::string_view name_in(const Table &table, Key key) {
  for (const auto &[value, text] : table)
    if (value == key)
      return text;
  return "?";
}

template <typename Table>
static auto parse_in(const Table &table, std::string_view text,
                     const char *what) {
  std::string known;
  for (const auto &[value, word] : table) {
    if (word == text)
      return value;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", word);
  }
  throw UserError(
      fmt::format("'{}' is no {}; use one of {}", text, what, known));
}

std::string_view name(GemmLayout layout) { return name_in(kLayouts, layout); }
GemmLayout parse_gemm_layout(std::string_view text) {
  return parse_in(kLayouts, text, "layout");
}
std::string_view name(GemmKind kind) { return name_in(kKinds, kind); }
GemmKind parse_gemm_kind(std::string_view text) {
  return parse_in(kKinds, text, "schedule");
}

std::string GemmProblem::to_string() const {
  return fmt::format("{}x{}x{} {} += {} * {}, {}", m.to_string(), n.to_string(),
                     k.to_string(), name(out), name(type), name(type),
                     name(layout));
}

std::string GemmSchedule::to_string() const {
  return fmt::format("{} {}x{}x{}, {} stage{}", name(kind), tile_m, tile_n,
                     tile_k, stages, stages == 1 ? "" : "s");
}

std::string gemm_kernel_name(const GemmProblem &problem,
                             const GemmSchedule &schedule) {
  bool is_multistage = schedule.kind == GemmKind::multistage;
  std::string text = fmt::format(
      "{}_{}x{}x{}_{}x{}x{}_{}",
      is_multistage ? "multistage" : "warpspecialized", problem.m.to_string(),
      problem.n.to_string(), problem.k.to_string(), schedule.tile_m,
      schedule.tile_n, schedule.tile_k, schedule.stages);
  if (problem.layout != GemmLayout::tt)
    text += fmt::format("_{}", name(problem.layout));
  if (problem.type != Type::f16)
    text += fmt::format("_{}", name(problem.type));
  if (problem.out != Type::f32)
    text += fmt::format("_out_{}", name(problem.out));
  GemmSchedule usual;
  if (!is_multistage &&
      (schedule.producer_registers != usual.producer_registers ||
       schedule.consumer_registers != usual.consumer_registers))
    text += fmt::format("_regs_{}_{}", schedule.producer_registers,
                        schedule.consumer_registers);
  return text;
}

/// Throw where the problem is none that these kernels solve.
static void check_problem(const GemmProblem &problem) {
  for (const auto &[letter, dim] :
       {std::pair{"M", problem.m}, {"N", problem.n}, {"K", problem.k}}) {
    if (dim.is_constant() && dim.constant() < 1)
      throw UserError(fmt::format("{} is {}; it must be at least 1", letter,
                                  dim.constant()));
    if (!dim.is_constant() && dim.op() != Dim::Op::argument)
      throw UserError(
          fmt::format("{} is {}; a runtime dimension is one argument", letter,
                      dim.to_string()));
  }
  if (problem.type != Type::f16 && problem.type != Type::bf16)
    throw UserError(
        fmt::format("gemm multiplies f16 or bf16, not {}", name(problem.type)));
  if (problem.out != Type::f32 && problem.out != Type::f16 &&
      problem.out != Type::bf16)
    throw UserError(
        fmt::format("gemm writes f32, f16 or bf16, not {}", name(problem.out)));
  // TMA reads rows that begin on 16 bytes: 8 elements of 16 bits.
  auto check_row = [&](const char *matrix, const char *letter, const Dim &dim) {
    if (dim.is_constant() && dim.constant() % 8 != 0)
      throw UserError(fmt::format(
          "{} has rows of {} {} elements, {} bytes, in layout {}; TMA needs a "
          "multiple of 16 bytes: make {} a multiple of 8",
          matrix, letter, dim.constant(), dim.constant() * 2,
          name(problem.layout), letter));
  };
  bool a_by_k = problem.a_is_k_major(), b_by_k = problem.b_is_k_major();
  check_row("A", a_by_k ? "K" : "M", a_by_k ? problem.k : problem.m);
  check_row("B", b_by_k ? "K" : "N", b_by_k ? problem.k : problem.n);
}

/// Throw where the tile is none the instruction can cover.
static void check_tile(const GemmProblem &problem,
                       const GemmSchedule &schedule) {
  auto refuse = [&](const std::string &why) {
    throw UserError(fmt::format("tile {}x{}x{}: {}", schedule.tile_m,
                                schedule.tile_n, schedule.tile_k, why));
  };
  if (schedule.tile_m < 64 || schedule.tile_m > 256 || schedule.tile_m % 64)
    refuse("M must be 64, 128, 192 or 256");
  // A side stored contiguously fills whole 128-byte rows.
  int step_n = problem.b_is_k_major() ? 8 : 64;
  if (schedule.tile_n < step_n || schedule.tile_n > 256 ||
      schedule.tile_n % step_n)
    refuse(fmt::format("N must be a multiple of {} from {} to 256 in layout {}",
                       step_n, step_n, name(problem.layout)));
  if (schedule.tile_k < 64 || schedule.tile_k > 256 || schedule.tile_k % 64)
    refuse("K must be 64, 128, 192 or 256");
  int registers = schedule.tile_m * schedule.tile_n / 128;
  if (registers > 192)
    refuse(fmt::format("its accumulator takes {} registers of each thread; the "
                       "warpgroup that multiplies can hold 192",
                       registers));
}

int max_gemm_stages(const GemmProblem &problem, const GemmSchedule &schedule) {
  return max_stages(
      {gemm::tile_of_a(problem, schedule), gemm::tile_of_b(problem, schedule)});
}

GemmSchedule fit(const GemmProblem &problem, const GemmSchedule &schedule) {
  check_problem(problem);
  check_tile(problem, schedule);
  if (schedule.stages < 1)
    throw UserError(
        fmt::format("{} stages; at least 1 is needed", schedule.stages));
  GemmSchedule result = schedule;
  if (problem.k.is_constant()) {
    auto tiles = ceil_div(problem.k, schedule.tile_k).constant();
    result.stages =
        static_cast<int>(std::min<std::int64_t>(result.stages, tiles));
  }
  int most = max_gemm_stages(problem, schedule);
  if (result.stages > most)
    throw UserError(fmt::format(
        "{} stages of {}x{}x{} do not fit into shared memory; {} do",
        schedule.stages, schedule.tile_m, schedule.tile_n, schedule.tile_k,
        most));
  return result;
}

Module build_gemm(const GemmProblem &problem, const GemmSchedule &schedule) {
  GemmSchedule fitted = fit(problem, schedule);
  if (fitted.kind == GemmKind::multistage)
    return gemm::build_multistage(problem, fitted);
  return gemm::build_warp_specialized(problem, fitted);
}

} // namespace kiln
