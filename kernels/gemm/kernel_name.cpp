// kernel_name: a name for each kernel, and none for two.
//
// The plain kernel has the shortest name: what differs from it is added, field
// by field. A field that `fit` fills in counts as left out where it holds what
// `fit` would have chosen.
#include "words.h"

#include <kiln/gemm.h>

namespace kiln {

using namespace gemm;

/// The fields where 0 stands for what fits.
static constexpr std::pair<int GemmSchedule::*, std::string_view> kOpen[] = {
    {&GemmSchedule::instruction_n, "instr"},
    {&GemmSchedule::consumers, "consumers"},
    {&GemmSchedule::ctas, "ctas"},
    {&GemmSchedule::epilogue_m, "epim"},
    {&GemmSchedule::epilogue_n, "epin"},
    {&GemmSchedule::producer_registers, "pregs"},
    {&GemmSchedule::consumer_registers, "cregs"},
};

/// A dimension in a name: digits, its own letter, or an expression spelled out
/// so that no two are alike.
static std::string in_name(const Dim &dim, std::string_view own) {
  std::string text = dim.to_string();
  if ((dim.is_constant() && dim.constant() >= 0) || text == own)
    return text;
  std::string spelled;
  for (char c : text) {
    if (c == ' ')
      continue; // follows a comma
    constexpr std::pair<char, std::string_view> kSpelled[] = {
        {'_', "__"}, {'(', "_o"}, {')', "_c"}, {',', "_k"}, {'-', "_n"}};
    if (has_word(kSpelled, name_in(kSpelled, c)))
      spelled += name_in(kSpelled, c);
    else
      spelled += c;
  }
  return fmt::format("e{}_{}", spelled.size(), spelled);
}

/// What `fit` puts where 0 stands; 0 where the rest alone fits nothing.
static GemmSchedule filled_in(const GemmProblem &problem,
                              const GemmSchedule &schedule) {
  GemmSchedule open = schedule;
  for (const auto &[field, word] : kOpen)
    open.*field = 0;
  try {
    return fit(problem, open);
  } catch (const UserError &) {
    return open;
  }
}

static std::string problem_suffix(const GemmProblem &problem) {
  std::string text;
  auto add = [&](std::string_view word) { text += fmt::format("_{}", word); };
  if (problem.layout != GemmLayout::tt)
    add(name(problem.layout));
  if (problem.type != Type::f16)
    add(name(problem.type));
  if (problem.out != Type::f32)
    add(fmt::format("out_{}", name(problem.out)));
  if (!(problem.batch == Dim(1)))
    add(fmt::format("batch_{}", in_name(problem.batch, "batch")));
  GemmProblem usual = problem;
  usual.accumulate.reset();
  if (problem.accumulator() != usual.accumulator())
    add(fmt::format("acc_{}", name(problem.accumulator())));
  for (const auto &[word, leading] : {std::pair{"lda", problem.lda},
                                      {"ldb", problem.ldb},
                                      {"ldc", problem.ldc},
                                      {"ldd", problem.ldd}})
    if (leading)
      add(fmt::format("{}_{}", word, in_name(*leading, word)));
  if (problem.is_d_column_major)
    add("dcol");
  if (problem.has_alpha)
    add("alpha");
  if (problem.has_beta)
    add("beta");
  if (problem.bias != GemmBias::none)
    add(fmt::format("bias_{}", name(problem.bias)));
  if (problem.act != Activation::none)
    add(name(problem.act));
  return text;
}

static std::string schedule_suffix(const GemmProblem &problem,
                                   const GemmSchedule &schedule) {
  std::string text;
  auto add = [&](std::string_view word, int value) {
    text += fmt::format("_{}{}", word, value);
  };
  GemmSchedule usual, filled = filled_in(problem, schedule);
  for (const auto &[field, word] : kOpen)
    if (schedule.*field != 0 && schedule.*field != filled.*field)
      add(word, schedule.*field);
  if (schedule.split != usual.split)
    text += "_splitn";
  if (schedule.is_a_in_registers)
    text += "_aregs";
  if (schedule.swizzle != usual.swizzle)
    add("swizzle", static_cast<int>(schedule.swizzle));
  if (schedule.cluster_m != usual.cluster_m ||
      schedule.cluster_n != usual.cluster_n)
    text +=
        fmt::format("_cluster{}x{}", schedule.cluster_m, schedule.cluster_n);
  if (schedule.is_multicast != usual.is_multicast)
    text += "_nomulticast";
  if (schedule.raster != usual.raster)
    text += "_rasterm";
  if (schedule.raster_group != usual.raster_group)
    add("group", schedule.raster_group);
  if (schedule.occupancy != usual.occupancy)
    add("occupancy", schedule.occupancy);
  if (schedule.split_k != usual.split_k)
    add("splitk", schedule.split_k);
  if (schedule.is_swapped)
    text += "_swap";
  return text;
}

std::string gemm_kernel_name(const GemmProblem &problem,
                             const GemmSchedule &schedule) {
  std::string kind(name(schedule.kind));
  std::erase(kind, '-');
  return fmt::format("{}_{}x{}x{}_{}x{}x{}_{}{}{}", kind,
                     in_name(problem.m, "m"), in_name(problem.n, "n"),
                     in_name(problem.k, "k"), schedule.tile_m, schedule.tile_n,
                     schedule.tile_k, schedule.stages, problem_suffix(problem),
                     schedule_suffix(problem, schedule));
}

} // namespace kiln
