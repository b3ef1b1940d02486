// grouped_gemm_command: the products of all groups, from their sizes to a
// verdict.
#include "commands.h"
#include "grouped_matrices.h"
#include "kernel_command.h"
#include "kernel_run.h"
#include "console/say.h"
#include "options/field_flags.h"

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
  std::vector<std::string> sizes; ///< groups, rows of each, N, K
  FieldFlags<GroupedGemmProblem> fields;
  FieldFlags<GroupedGemmSchedule> schedule_fields;
  std::vector<int> rows; ///< of each group, where they differ
  bool is_random = false;
  KernelCommand common;

  /// With as many rows as a group has at most.
  GroupedGemmProblem asked_problem() const;
  std::vector<int> group_rows(const GroupedGemmProblem &asked) const;
  GroupedGemmSchedule schedule() const;
};

} // namespace

GroupedGemmProblem GroupedCommand::asked_problem() const {
  GroupedGemmProblem problem;
  set_sizes(problem, sizes);
  fields.apply_to(problem);
  return problem;
}

GroupedGemmSchedule GroupedCommand::schedule() const {
  GroupedGemmSchedule schedule;
  schedule_fields.apply_to(schedule);
  return schedule;
}

std::vector<int>
GroupedCommand::group_rows(const GroupedGemmProblem &asked) const {
  int groups = asked.groups, most = asked.rows;
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

/// The problem of groups of so many rows.
static GroupedGemmProblem problem_of(GroupedGemmProblem problem,
                                     const std::vector<int> &group_rows) {
  problem.check();
  if (problem.layout == GroupLayout::masked)
    return problem;
  std::int64_t all =
      std::accumulate(group_rows.begin(), group_rows.end(), std::int64_t{0});
  problem.rows = static_cast<int>(
      std::clamp<std::int64_t>(all, 1, std::numeric_limits<int>::max()));
  problem.check();
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
  GroupedGemmProblem asked = command.asked_problem();
  std::vector<int> group_rows = command.group_rows(asked);
  GroupedGemmProblem problem = problem_of(asked, group_rows);
  GroupedGemmSchedule schedule = command.schedule();
  double rows = std::accumulate(group_rows.begin(), group_rows.end(), 0.0);
  std::optional<GroupedMatrices> host;
  return run(
      command.common,
      {.what = "grouped",
       .problem = problem.to_string(),
       .build = [&] { return build_grouped_gemm(problem, schedule); },
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
  command
      .add_option("sizes", options->sizes, sizes_help<GroupedGemmProblem>())
      .value_name("N")
      .required()
      .expected(4);
  options->fields.add_to(command);
  command
      .add_option("--rows", options->rows,
                  "of each group, with commas between, where they have fewer")
      .value_name("N")
      .delimiter(',');
  command.add_flag("--random-rows", options->is_random,
                   "of each group, from 0 on, drawn from the data's seed");
  options->schedule_fields.add_to(command);
  options->common.add_to(command);
  command.callback([&action, options] {
    action = [options] { return run_command(*options); };
  });
}

} // namespace kiln::cli
