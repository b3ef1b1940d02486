// grouped_gemm_command: the products of all groups, from their sizes to a
// verdict.
//
// The last line is the verdict: PASS, FAIL, or DONE where nothing was verified.
#include "commands.h"
#include "kernel_run.h"
#include "output_file.h"
#include "say.h"
#include "sim_options.h"

#include <kiln/compile.h>
#include <kiln/grouped_gemm.h>
#include <kiln/host_memory.h>
#include <kiln/reference.h>
#include <kiln/sim.h>

#include <algorithm>
#include <fmt/format.h>
#include <numeric>
#include <random>

namespace kiln::cli {

/// Launches that are timed after the verified one.
static constexpr int kTimedLaunches = 10;

namespace {

struct GroupedCommand {
  std::vector<int> sizes; ///< groups, rows of each, N, K
  std::vector<int> rows;  ///< of each group, where they differ
  bool is_random = false, is_masked = false;
  std::string type = "bf16", out, device = "auto";
  bool is_unverified = false, is_without_cache = false;
  GroupedGemmSchedule schedule;
  SimFlags sim;
  std::uint64_t data_seed = 0;
  std::string save_kernel_path;

  std::vector<int> group_rows() const;
  GroupedGemmProblem problem(const std::vector<int> &group_rows) const;
};

/// A, B, the numbers of rows, and D on the host.
struct HostMatrices {
  std::vector<std::byte> a, b, d;
  std::vector<std::int32_t> numbers;

  HostMatrices(const GroupedGemmProblem &problem,
               const std::vector<int> &group_rows, std::uint64_t seed);
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
    std::mt19937_64 random(data_seed);
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
  problem.out = out.empty() ? problem.type : parse_type(out);
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

HostMatrices::HostMatrices(const GroupedGemmProblem &problem,
                           const std::vector<int> &group_rows,
                           std::uint64_t seed) {
  auto rows = static_cast<std::size_t>(problem.stored_rows());
  auto k = static_cast<std::size_t>(problem.k);
  auto n = static_cast<std::size_t>(problem.n);
  std::size_t b_count = static_cast<std::size_t>(problem.groups) * n * k;
  auto in = static_cast<std::size_t>(size_bytes(problem.type));
  auto out = static_cast<std::size_t>(size_bytes(problem.out));
  HostMemory together;
  together.take(rows * k * in, "A");
  together.take(b_count * in, "B");
  together.take(rows * n * out, "D");
  a = host_bytes("A", rows * k * in);
  b = host_bytes("B", b_count * in);
  // NaN in every float type, so that what nobody wrote cannot pass.
  d = host_bytes("D", rows * n * out, std::byte{0xff});
  fill_random(problem.type, a.data(), rows * k, seed);
  fill_random(problem.type, b.data(), b_count, seed + 1);
  numbers = row_numbers(problem, group_rows);
}

template <typename T>
static Buffer copied(Device &device, const std::vector<T> &data) {
  std::size_t bytes = data.size() * sizeof(T);
  Buffer buffer = device.allocate(bytes);
  device.copy_in(buffer, data.data(), bytes);
  return buffer;
}

static ExitStatus verify(const GroupedGemmProblem &problem,
                         const std::vector<int> &group_rows,
                         const HostMatrices &host) {
  GroupedComparison result = compare_grouped_gemm(
      problem, group_rows, host.a.data(), host.b.data(), host.d.data());
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

static ExitStatus run_command(const GroupedCommand &command) {
  std::vector<int> group_rows = command.group_rows();
  GroupedGemmProblem problem = command.problem(group_rows);
  check_output("--save-kernel", command.save_kernel_path);
  if (command.sim.timeline_path != "-")
    check_output("--timeline", command.sim.timeline_path);
  Outputs outputs;
  SimOptions options = command.sim.options();
  RunWatch::attach(options);
  std::shared_ptr<Device> device;
  if (command.device != "none")
    device = open_device(command.device, options);
  report("grouped", "{}", problem.to_string());
  Kernel kernel = compile(build_grouped_gemm(problem, command.schedule),
                          {.use_cache = !command.is_without_cache});
  report("compiled", "{}", kernel.name);
  if (!command.save_kernel_path.empty())
    outputs.attempt([&] {
      kernel.save(command.save_kernel_path);
      report("saved", "{}", command.save_kernel_path);
    });
  if (!device) {
    report("device", "none, as asked");
    say("DONE (not verified)\n");
    return outputs.conclude(ExitStatus::ok);
  }
  report("device", "{}", device->name());
  HostMatrices host(problem, group_rows, command.data_seed);
  Buffer d = copied(*device, host.d);
  std::vector<LaunchArgument> arguments = {copied(*device, host.a),
                                           copied(*device, host.b),
                                           copied(*device, host.numbers), d};
  double rows = std::accumulate(group_rows.begin(), group_rows.end(), 0.0);
  if (!run_kernel(*device, kernel, arguments,
                  {kTimedLaunches, 2.0 * rows * problem.n * problem.k},
                  command.sim, outputs,
                  [&] { device->copy_out(host.d.data(), d, host.d.size()); })) {
    show_failure();
    return outputs.conclude(ExitStatus::finding);
  }
  if (!command.is_unverified)
    return outputs.conclude(verify(problem, group_rows, host));
  say("DONE (not verified)\n");
  return outputs.conclude(ExitStatus::ok);
}

void add_grouped_gemm_command(CLI::App &app, Action &action) {
  CLI::App *command = app.add_subcommand(
      "grouped-gemm",
      "build, run and verify D[i] = A[i] * B[g]^T for the rows i of group g");
  auto options = std::make_shared<GroupedCommand>();
  command->add_option("sizes", options->sizes, "groups, rows of each, N and K")
      ->required()
      ->expected(4);
  command
      ->add_option("--rows", options->rows,
                   "of each group, with commas between, where they have fewer")
      ->delimiter(',');
  command->add_flag("--random-rows", options->is_random,
                    "of each group, from 0 on, drawn from the data's seed");
  command->add_flag("--masked", options->is_masked,
                    "each group has room for all its rows, and a count");
  command->add_option("--type", options->type, "of A and B: bf16, f16")
      ->capture_default_str();
  command->add_option("--out", options->out,
                      "type of D: that of A and B, or f32");
  command->add_option("--tile-n", options->schedule.tile_n,
                      "columns of a tile of 128 rows: 64, 128, 192 or 256");
  command->add_option("--stages", options->schedule.stages,
                      "K tiles in shared memory; 0: as many as fit");
  command->add_option("--ctas", options->schedule.ctas,
                      "0: one for each multiprocessor");
  command->add_option("--device", options->device, "auto, sim, cuda or none")
      ->capture_default_str();
  options->sim.add_to(*command);
  command->add_option("--allow", options->sim.allow,
                      "ids of findings not to report");
  command->add_option("--data-seed", options->data_seed, "of the numbers")
      ->capture_default_str();
  command->add_flag("--no-verify", options->is_unverified,
                    "do not compare with the reference");
  command->add_flag("--no-cache", options->is_without_cache,
                    "compile again, keep nothing");
  command->add_option("--save-kernel", options->save_kernel_path,
                      "write the kernel to this file");
  command->callback([&action, options] {
    action = [options] { return run_command(*options); };
  });
}

} // namespace kiln::cli
