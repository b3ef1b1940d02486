// tune_command: what the choice of a schedule rests on.
#include "commands.h"
#include "gemm_options.h"
#include "say.h"

#include <kiln/gemm.h>

#include <fmt/format.h>

namespace kiln::cli {

namespace {
struct ExplainOptions {
  GemmOptions gemm;
  std::string device = "h200";
  int most = 10;
};
} // namespace

static ExitStatus explain(const ExplainOptions &options) {
  if (options.most < 1)
    throw UserError(
        fmt::format("--most {}; at least 1 candidate is shown", options.most));
  GemmProblem problem =
      options.gemm.with_arguments(options.gemm.sized_problem());
  const auto &device = DeviceDescription::by_name(options.device);
  auto ranked = rank_schedules(problem, options.most, device);
  say("{}\n{:>9} {:>9} {:>9} {:>9}  {}\n", problem.to_string(), "total us",
      "launch", "tiles", "memory", "schedule");
  for (const RankedSchedule &one : ranked)
    say("{:9.2f} {:9.2f} {:9.2f} {:9.2f}  {}\n", one.cost.total_us(),
        one.cost.launch_us, one.cost.tiles_us, one.cost.memory_us,
        one.schedule.to_string());
  return ExitStatus::ok;
}

void add_tune_command(CLI::App &app, Action &action) {
  CLI::App *command =
      app.add_subcommand("tune", "how the schedule of a product is chosen");
  command->require_subcommand(1);
  CLI::App *explaining = command->add_subcommand(
      "explain", "the candidates with their predicted times, best first");
  auto options = std::make_shared<ExplainOptions>();
  explaining->add_option("sizes", options->gemm.sizes, "M N K")
      ->required()
      ->expected(3);
  options->gemm.add_to(*explaining);
  explaining->add_option("--most", options->most, "candidates to show")
      ->capture_default_str();
  explaining
      ->add_option("--device", options->device,
                   "the GPU it is predicted for: h100 or h200")
      ->capture_default_str();
  explaining->callback(
      [&action, options] { action = [options] { return explain(*options); }; });
}

} // namespace kiln::cli
