// grouped_gemm_command: the products of all groups, from their sizes to a
// verdict.
#include "commands.h"
#include "grouped_matrices.h"
#include "kernel_command.h"
#include "kernel_run.h"
#include "console/say.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>
#include <optional>
#include <random>

namespace kiln::cli {

/// Launches that are timed after the verified one.
static constexpr int kTimedGroups = 10;

namespace {

struct GroupedCommand {
  std::vector<int> sizes; ///< groups, rows of each, N, K
  std::vector<int> rows;  ///< of each group, where they differ
  bool is_random = false, is_masked = false;
  bool is_swiglu = false, has_scales = false;
  std::string type = "bf16", out;
  GroupedGemmSchedule schedule;
  KernelCommand common;

  std::vector<int> group_rows() const;
  GroupedGemmProblem problem(const std::vector<int> &group_rows) const;
};

} // namespace

std::vector<int> GroupedCommand::group_rows() const {
  int groups = sizes[0], most = sizes[1];
  if (!rows.empty()) {
    if (static_cast<int>(rows.size()) != groups)
      throw UserError(fmt::format("--rows has {} numbers for {} groups",
                                  rows.size(), groups));
    for (int count : rows)
      if (count < 0 || count > most)
        throw UserError(
            fmt::format("a group of {} rows; expected 0 to {}", count, most));
    return rows;
  }
  std::vector<int> result(std::max(groups, 0), most);
  if (is_random) {
    std::mt19937_64 random(common.data_seed);
    for (int &count : result)
      count = static_cast<int>(random() % (std::max(most, 0) + 1ull));
  }
  return result;
}

GroupedGemmProblem
GroupedCommand::problem(const std::vector<int> &group_rows) const {
  GroupedGemmProblem problem{.groups = sizes[0],
                             .rows = sizes[1],
                             .n = sizes[2],
                             .k = sizes[3],
                             .type = parse_type(type)};
  bool is_fp8 = problem.type == Type::e4m3;
  problem.out = !out.empty() ? parse_type(out)
                : is_fp8     ? Type::bf16
                             : problem.type;
  problem.is_swiglu = is_swiglu;
  if (has_scales)
    problem.scaling = Scaling::blocks;
  if (is_masked)
    problem.layout = GroupLayout::masked;
  problem.check();
  if (!is_masked) {
    std::int64_t all =
        std::accumulate(group_rows.begin(), group_rows.end(), std::int64_t{0});
    problem.rows = static_cast<int>(
        std::clamp<std::int64_t>(all, 1, std::numeric_limits<int>::max()));
    problem.check();
  }
  return problem;
}

static ExitStatus verify(const GroupedGemmProblem &problem,
                         const std::vector<int> &group_rows,
                         const GroupedMatrices &host) {
  GroupedComparison result = host.compare(problem, group_rows);
  if (result.is_sampled)
    report("compared", "{} elements, spread over D", result.compared);
  if (result.ok()) {
    say("PASS max_rel_err={:.2e}\n", result.max_rel_err);
    return ExitStatus::ok;
  }
  report("wrong", "{}", result.first_wrong);
  say("FAIL max_rel_err={:.2e}, {} of {} elements are wrong\n",
      result.max_rel_err, result.wrong, result.compared);
  return ExitStatus::wrong;
}

/// Run once into `host`; on a GPU some times more, for the time. False where
/// the simulator found an error.
static bool launch(Device &device, const GroupedGemmProblem &problem, const Kernel &kernel,
                   GroupedMatrices &host, double rows,
                   const CheckSettings &settings, Outputs &outputs) {
  GroupedBuffers buffers(device, host);
  double operations = 2.0 * rows * double(problem.b_rows()) * problem.k;
  return run_kernel(device, kernel, buffers.arguments(kernel),
                    {kTimedGroups, operations}, settings, outputs, [&] {
                      buffers.fetch(device, host);
                      return std::vector<std::span<const std::byte>>{host.d};
                    });
}

static ExitStatus run_command(const GroupedCommand &command) {
  std::vector<int> group_rows = command.group_rows();
  GroupedGemmProblem problem = command.problem(group_rows);
  double rows = std::accumulate(group_rows.begin(), group_rows.end(), 0.0);
  std::optional<GroupedMatrices> host;
  return run(
      command.common,
      {.what = "grouped",
       .problem = problem.to_string(),
       .build = [&] { return build_grouped_gemm(problem, command.schedule); },
       .launch =
           [&](Device &device, const Kernel &kernel,
               const CheckSettings &settings, Outputs &outputs) {
             host.emplace(problem, group_rows, command.common.data_seed);
             return launch(device, problem, kernel, *host, rows, settings,
                           outputs);
           },
       .verify = [&] { return verify(problem, group_rows, *host); }});
}

void add_grouped_gemm_command(Command app, Action &action) {
  Command command = app.add_subcommand(
      "grouped-gemm",
      "build, run and verify D[i] = A[i] * B[g]^T for the rows i of group g");
  auto options = std::make_shared<GroupedCommand>();
  command.add_option("sizes", options->sizes, "groups, rows of each, N and K")
      .required()
      .expected(4);
  command
      .add_option("--rows", options->rows,
                  "of each group, with commas between, where they have fewer")
      .delimiter(',');
  command.add_flag("--random-rows", options->is_random,
                   "of each group, from 0 on, drawn from the data's seed");
  command.add_flag("--masked", options->is_masked,
                   "each group has room for all its rows, and a count");
  command.add_flag("--swiglu", options->is_swiglu,
                   "D = silu(A * gate^T) * (A * up^T), both of N rows in B");
  command.add_flag("--scales", options->has_scales,
                   "factors of 1x128 elements of A and 128x128 of B; of e4m3");
  command.add_option("--type", options->type, "of A and B: bf16, f16, e4m3")
      .capture_default_str();
  command.add_option("--out", options->out,
                     "type of D: that of A and B, or f32; of e4m3 bf16, f16 "
                     "or f32");
  command.add_option("--tile-n", options->schedule.tile_n,
                     "rows of B for 128 rows of A: 64, 128, 192 or 256");
  command.add_option("--stages", options->schedule.stages,
                     "K tiles in shared memory; 0: as many as fit");
  command.add_option("--ctas", options->schedule.ctas,
                     "0: one for each multiprocessor");
  options->common.add_to(command);
  command.callback([&action, options] {
    action = [options] { return run_command(*options); };
  });
}

} // namespace kiln::cli
