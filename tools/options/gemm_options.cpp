// gemm_options: from words to a problem and a schedule.
#include "gemm_options.h"

#include <kiln/base/error.h>

#include <charconv>
#include <fmt/format.h>

namespace kiln::cli {

/// The options that are a number of the problem.
static constexpr std::pair<const char *, const char *> kProblemNumbers[] = {
    {"batch", "products"},
    {"lda", "elements from one row (column) of A to the next"},
    {"ldb", "the same of B"},
    {"ldc", "the same of C"},
    {"ldd", "the same of D"},
    {"stride-a", "elements from one product's A to the next; 0: one for all"},
    {"stride-b", "the same of B"},
    {"stride-c", "the same of C"},
    {"stride-d", "the same of D, not 0"},
};

/// A whole number from 1 on that a kernel can count to in 32 bits.
static bool is_count(std::string_view text) {
  int value = 0;
  const char *begin = text.data(), *end = begin + text.size();
  auto [stop, error] = std::from_chars(begin, end, value);
  return error == std::errc() && stop == end && value > 0;
}

void GemmOptions::add_problem_to(Command command) {
  command
      .add_option("--type", type,
                  "of A and B: f16, bf16, tf32, e4m3, e5m2, e2m3, e3m2, e2m1, "
                  "i8, u8")
      .capture_default_str();
  command.add_option("--out", out, "type of C and D: f32, f16, bf16, e4m3, i32")
      .capture_default_str();
  command
      .add_option("--layout", layout,
                  "of A, then B: t row-major, n column-major")
      .capture_default_str();
  command.add_option("--layout-d", layout_d_, "of C and D: row or column");
  command.add_option("--accumulate", accumulate_,
                     "type of the sums: f32, f16, i32");
  for (const auto &[word, meaning] : kProblemNumbers)
    command.add_option(fmt::format("--{}", word), numbers_[word], meaning);
  command.add_option("--alpha", alpha, "a number A * B is multiplied by");
  command.add_option("--beta", beta, "a number C is multiplied by, and added");
  command.add_option("--bias", bias_,
                     "add a vector: a number per row, or per column");
  command.add_option("--act", act_, "relu, gelu or silu, last");
  command.add_option("--scales", scales_,
                     "factors of A and B: none, tensor, blocks, mx, nv");
  command
      .add_option("--runtime", runtime_dims,
                  "dimensions that are arguments of the kernel: m,n,k,batch")
      .delimiter(',')
      .one_value_each();
}

void GemmOptions::add_to(Command command) {
  add_problem_to(command);
  command
      .add_option("--schedule", schedule_kind,
                  "auto; model: auto without what was measured; multistage, "
                  "warp-specialized, cooperative, pingpong")
      .capture_default_str();
  command.add_option("--target", target,
                     "what to build for, such as sm_90a; left out: what the "
                     "device runs");
  command.add_option("--tile", tile, "MxNxK of one CTA's step");
  for (const auto &[word, meaning] : gemm_schedule_words())
    command.add_option(fmt::format("--{}", word), words_[std::string(word)],
                       std::string(meaning));
}

void add_to(Command command, AssembleOptions &options) {
  command.add_option("--ptxas", options.ptxas, "the ptxas to assemble with")
      .existing_file();
  command
      .add_option("--allow", options.allow,
                  "a ptxas diagnostic not to fail on, such as C7508")
      .one_value_each();
}

std::string GemmOptions::problem_words() const {
  std::string text =
      fmt::format("{} -> {} {}", name(parse_type(type)), name(parse_type(out)),
                  name(parse_gemm_layout(layout)));
  if (!layout_d_.empty())
    text += fmt::format(" d={}", layout_d_);
  if (!accumulate_.empty())
    text += fmt::format(" acc={}", name(parse_type(accumulate_)));
  for (const auto &[word, number] : numbers_)
    if (number)
      text += fmt::format(" {}={}", word, *number);
  if (alpha)
    text += " alpha";
  if (beta)
    text += " beta";
  if (!bias_.empty())
    text += fmt::format(" bias={}", bias_);
  if (!act_.empty())
    text += fmt::format(" act={}", act_);
  if (!scales_.empty())
    text += fmt::format(" scales={}", scales_);
  return text;
}

GemmProblem GemmOptions::sized_problem() const {
  if (sizes.size() != 3)
    throw UserError(fmt::format("a gemm has three sizes, M N K; there {} {}",
                                sizes.size() == 1 ? "is" : "are",
                                sizes.size()));
  for (std::size_t i = 0; i < 3; ++i)
    if (!is_count(sizes[i]))
      throw UserError(fmt::format("{} is '{}'; it must be a whole number from "
                                  "1 to 2147483647",
                                  "MNK"[i], sizes[i]));
  return sized_problem(fmt::format("{}x{}x{}", sizes[0], sizes[1], sizes[2]),
                       "");
}

GemmProblem GemmOptions::sized_problem(const std::string &sizes,
                                       const std::string &words) const {
  return GemmProblem::parse(
      fmt::format("{} {} {}", sizes, problem_words(), words));
}

GemmProblem GemmOptions::with_arguments(const GemmProblem &sized) const {
  GemmProblem problem = sized;
  std::pair<const char *, Dim *> dims[] = {{"m", &problem.m},
                                           {"n", &problem.n},
                                           {"k", &problem.k},
                                           {"batch", &problem.batch}};
  for (const std::string &letter : runtime_dims) {
    auto *found = std::find_if(std::begin(dims), std::end(dims),
                               [&](auto &dim) { return dim.first == letter; });
    if (found == std::end(dims))
      throw UserError(fmt::format("'{}' is not a dimension; --runtime takes m, "
                                  "n, k, batch or several of "
                                  "them with commas between",
                                  letter));
    *found->second = Dim::argument(letter);
  }
  return problem;
}

ReferenceGemm GemmOptions::reference(const GemmProblem &sized) const {
  ReferenceGemm gemm = reference_of(sized);
  // The kernel takes them as f32.
  gemm.alpha = static_cast<float>(alpha.value_or(1));
  gemm.beta = static_cast<float>(beta.value_or(0));
  return gemm;
}

const DeviceDescription &GemmOptions::built_for(const Device *device) const {
  if (target.empty())
    return device ? device->description() : DeviceDescription::h200();
  const auto &described = DeviceDescription::for_target(target);
  if (!device)
    return described;
  if (!device->description().runs(target))
    throw UserError(fmt::format(
        "--target {} does not run on {}, which runs {}; use --device sim "
        "without --gpu, or --device none",
        target, device->name(), device->description().target()));
  return device->description();
}

std::string GemmOptions::schedule_words() const {
  // GemmSchedule::parse knows a tile by its first digit.
  if (!tile.empty() && (tile[0] < '0' || tile[0] > '9'))
    throw UserError(fmt::format(
        "'{}' is not a valid tile; write MxNxK, for example 128x128x64", tile));
  std::string text = tile;
  for (const auto &[word, value] : words_)
    if (!value.empty())
      text += fmt::format(" {}={}", word, value);
  return text;
}

std::optional<int> GemmOptions::asked_stages() const {
  if (words_.at("stages").empty())
    return std::nullopt;
  return GemmSchedule::parse("stages=" + words_.at("stages")).stages;
}

GemmSchedule GemmOptions::schedule(const GemmProblem &problem,
                                   const DeviceDescription &device) const {
  std::string words = schedule_words();
  GemmSchedule base;
  bool is_model = schedule_kind == "model";
  if (schedule_kind != "auto" && !is_model) {
    base.kind = parse_gemm_kind(schedule_kind);
  } else {
    base = is_model ? rank_schedules(problem, 1, device).front().schedule
                    : pick_schedule(problem, device);
    if (words.empty())
      return base;
    base = base.reopened();
  }
  GemmSchedule schedule = GemmSchedule::parse(base.to_string() + " " + words);
  if (asked_stages())
    return schedule;
  // Everything but the stages must be right before they can be counted.
  GemmSchedule one = schedule;
  one.stages = 1;
  fit(problem, one, device);
  schedule.stages =
      std::min(schedule.stages, max_gemm_stages(problem, schedule, device));
  return schedule;
}

GemmSchedule
GemmOptions::fitted_schedule(const GemmProblem &sized,
                             const DeviceDescription &device) const {
  GemmProblem problem = with_arguments(sized);
  GemmSchedule asked = schedule(problem, device);
  // It must suit the numbers that arguments have, too, where D may go out in
  // other pieces.
  GemmSchedule of_numbers = asked;
  of_numbers.epilogue_n = 0;
  fit(sized, of_numbers, device);
  return fit(problem, asked, device);
}

} // namespace kiln::cli
