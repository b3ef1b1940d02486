// gemm_options: from words to a problem and a schedule.
#include "gemm_options.h"

#include <kiln/base/error.h>

#include <algorithm>
#include <charconv>
#include <fmt/format.h>

namespace kiln::cli {

/// A whole number from 1 on that a kernel can count to in 32 bits.
static bool is_count(std::string_view text) {
  int value = 0;
  const char *begin = text.data(), *end = begin + text.size();
  auto [stop, error] = std::from_chars(begin, end, value);
  return error == std::errc() && stop == end && value > 0;
}

void GemmOptions::add_problem_to(Command command) {
  problem_fields_.add_to(command);
  command.add_option("--alpha", alpha, help_of<GemmProblem>("alpha"))
      .value_name("X");
  command.add_option("--beta", beta, help_of<GemmProblem>("beta"))
      .value_name("X");
  command
      .add_option("--runtime", runtime_dims,
                  "dimensions that are arguments of the kernel: m,n,k,batch")
      .value_name("DIM")
      .delimiter(',')
      .one_value_each();
}

void GemmOptions::add_to(Command command) {
  add_problem_to(command);
  command
      .add_option("--schedule", schedule_kind,
                  "auto; model: auto without what was measured; multistage, "
                  "warp-specialized, cooperative, pingpong")
      .value_name("WORD")
      .capture_default_str();
  command
      .add_option("--target", target,
                  "what to build for, such as sm_90a; left out: what the "
                  "device runs")
      .value_name("TARGET");
  command.add_option("--tile", tile, "of one CTA's step").value_name("MxNxK");
  schedule_fields_.add_to(command);
}

void add_to(Command command, AssembleOptions &options) {
  command.add_option("--ptxas", options.ptxas, "the ptxas to assemble with")
      .value_name("FILE")
      .existing_file();
  command
      .add_option("--allow", options.allow,
                  "a ptxas diagnostic not to fail on, such as C7508")
      .value_name("CODE")
      .one_value_each();
}

/// Refuse names: a kernel has those of --runtime as arguments.
static void check_numbers(const GemmProblem &problem) {
  for (const std::optional<Dim> &dim :
       {std::optional(problem.batch), problem.lda, problem.ldb, problem.ldc,
        problem.ldd, problem.batch_stride_a, problem.batch_stride_b,
        problem.batch_stride_c, problem.batch_stride_d})
    if (dim && !dim->is_constant())
      throw UserError(fmt::format("'{}' is not a number; --runtime makes "
                                  "dimensions arguments of the kernel",
                                  dim->to_string()));
}

/// The usual problem, but for what was given.
GemmProblem GemmOptions::usual_problem() const {
  GemmProblem problem;
  problem_fields_.apply_to(problem);
  problem.has_alpha = alpha.has_value();
  problem.has_beta = beta.has_value();
  check_numbers(problem);
  return problem;
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
  GemmProblem problem = usual_problem();
  set_sizes(problem, sizes);
  return problem;
}

GemmProblem GemmOptions::sized_problem(const std::string &text) const {
  return usual_problem().with(text);
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

DeviceDescription GemmOptions::built_for(const Device *device) const {
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
  // An older target on a newer GPU: what the target has, in the GPU's limits.
  DeviceDescription own = device->description();
  if (own.target() == target)
    return own;
  own.name += ", " + target; // what was tuned on it was tuned for its own
  own.compute_major = described.compute_major;
  own.compute_minor = described.compute_minor;
  own.tensor_core = described.tensor_core;
  own.tensor_memory_columns = described.tensor_memory_columns;
  own.max_cluster_ctas = described.max_cluster_ctas;
  own.f16_flops_per_clock = described.f16_flops_per_clock;
  own.max_smem_per_cta_bytes =
      std::min(own.max_smem_per_cta_bytes, described.max_smem_per_cta_bytes);
  return own;
}

std::optional<int> GemmOptions::asked_stages() const {
  if (!schedule_fields_.is_given("stages"))
    return std::nullopt;
  GemmSchedule asked;
  schedule_fields_.apply_to(asked);
  return asked.stages;
}

/// The schedule with the tile and the fields that were given.
GemmSchedule GemmOptions::with_fields(GemmSchedule schedule) const {
  // A schedule's text knows a tile by its first digit.
  if (!tile.empty() && (tile[0] < '0' || tile[0] > '9'))
    throw UserError(fmt::format(
        "'{}' is not a valid tile; write MxNxK, for example 128x128x64", tile));
  schedule = schedule.with(tile);
  schedule_fields_.apply_to(schedule);
  return schedule;
}

GemmSchedule GemmOptions::schedule(const GemmProblem &problem,
                                   const DeviceDescription &device) const {
  GemmSchedule base;
  bool is_model = schedule_kind == "model";
  if (schedule_kind != "auto" && !is_model) {
    base.kind = parse_gemm_kind(schedule_kind);
  } else {
    base = is_model ? rank_schedules(problem, 1, device).front().schedule
                    : pick_schedule(problem, device);
    if (tile.empty() && !schedule_fields_.is_any_given())
      return base;
    base = base.reopened();
  }
  GemmSchedule schedule = with_fields(base);
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
