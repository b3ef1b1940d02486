// kernel_name: a name for each kernel, and none for two.
//
// The plain kernel has the shortest name: what differs from it is added, field
// by field. A field that `fit` fills in counts as left out where it holds what
// `fit` would have chosen.
#include "schedule.h"
#include "words.h"

namespace kiln {

using namespace gemm_kernel;

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
                              const GemmSchedule &schedule,
                              const DeviceDescription &device) {
  GemmSchedule open = schedule.reopened();
  try {
    return fit(problem, open, device);
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
                                      {"ldd", problem.ldd},
                                      {"sa", problem.batch_stride_a},
                                      {"sb", problem.batch_stride_b},
                                      {"sc", problem.batch_stride_c},
                                      {"sd", problem.batch_stride_d}})
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
  if (problem.scaling != Scaling::none)
    add(fmt::format("scales_{}", name(problem.scaling)));
  return text;
}

static std::string schedule_suffix(const GemmProblem &problem,
                                   const GemmSchedule &schedule,
                                   const DeviceDescription &device) {
  std::string text;
  GemmSchedule usual, filled = filled_in(problem, schedule, device);
  for (const ScheduleField &field : schedule_fields()) {
    std::string value = field.get(schedule);
    if (field.is_always_said() || value == field.get(usual) ||
        (field.is_open && value == field.get(filled)))
      continue;
    std::string word(field.word);
    std::erase(word, '-');
    text += fmt::format("_{}{}", word, value);
  }
  return text;
}

std::string gemm_kernel_name(const GemmProblem &problem,
                             const GemmSchedule &schedule,
                             const DeviceDescription &device) {
  std::string kind(name(schedule.kind));
  std::erase(kind, '-');
  return fmt::format("{}_{}x{}x{}_{}x{}x{}_{}{}{}", kind,
                     in_name(problem.m, "m"), in_name(problem.n, "n"),
                     in_name(problem.k, "k"), schedule.tile_m, schedule.tile_n,
                     schedule.tile_k, schedule.stages, problem_suffix(problem),
                     schedule_suffix(problem, schedule, device));
}

} // namespace kiln
