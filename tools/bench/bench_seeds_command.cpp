// bench_seeds_command: the tables of the seeds, listed or measured.
#include "bench_run.h"
#include "bench_seeds.h"
#include "console/output_file.h"
#include "console/progress.h"

namespace kiln::cli {

namespace {
struct SeedsCommand {
  std::vector<std::string> tables;
  BenchFlags flags;
  bool is_dry = false;
};
} // namespace

static ExitStatus list(const std::vector<SeedGroup> &groups) {
  for (const SeedGroup &group : groups)
    print(group);
  return ExitStatus::ok;
}

static ExitStatus run_command(const SeedsCommand &command) {
  std::vector<SeedGroup> groups = seed_groups(command.tables);
  if (command.is_dry)
    return list(groups);
  const BenchFlags &flags = command.flags;
  check_output("--json", flags.json_path);
  BenchRun run(flags);
  BenchReport report;
  report.machine = run.device->name();
  std::shared_ptr<CublasLt> cublas;
  try {
    cublas = open_cublaslt(*run.device);
    report.library_version = cublas->version();
  } catch (const RuntimeError &error) {
    report.library_missing = error.message();
  }
  report.print_header();
  SeedBench bench{*run.device, cublas.get(), run.watch, run.plan,
                  !flags.is_unverified};
  std::vector<SeedResult> results;
  ExitStatus status = ExitStatus::ok;
  for (const SeedGroup &group : groups) {
    show_progress(results.size(), groups.size(),
                  group.table + " " + group.problem.to_string());
    results.push_back(measure(group, bench));
    end_progress();
    print(results.back());
    for (const SeedResult::Row &row : results.back().rows)
      if (row.is_wrong)
        status = ExitStatus::wrong;
  }
  Outputs outputs;
  if (!flags.json_path.empty())
    outputs.attempt([&] { write_seeds(flags.json_path, bench, results); });
  return outputs.conclude(status);
}

void add_bench_seeds(Command bench, std::function<ExitStatus()> &action) {
  Command command = bench.add_subcommand(
      "seeds", "the tables of the programs that Kiln began with");
  auto options = std::make_shared<SeedsCommand>();
  BenchFlags &flags = options->flags;
  command.add_option("tables", options->tables,
                     "some of " + seed_table_names() + "; none: all");
  command.add_flag("--dry-run", options->is_dry, "list the rows, and stop");
  command.add_option("--json", flags.json_path,
                     "write every sample to this file");
  command.add_option("--device", flags.device, "cuda or cuda:1")
      .capture_default_str();
  command.add_option("--rounds", flags.rounds, "samples of each")
      .capture_default_str();
  command.add_option("--pause-ms", flags.pause_ms, "before each burst")
      .capture_default_str();
  command.add_option("--burst-ms", flags.burst_ms, "how long one takes")
      .capture_default_str();
  command.add_flag("--no-verify", flags.is_unverified,
                   "do not compare with the reference first");
  command.callback([&action, options] {
    action = [options] { return run_command(*options); };
  });
}

} // namespace kiln::cli
