// bench_grouped_gemm: products of groups beside cuBLAS's.
#include "bench_run.h"
#include "kernels/grouped_matrices.h"
#include "options/field_flags.h"

#include <kiln/measure/cublas.h>

#include <fmt/format.h>
#include <limits>

namespace kiln::cli {

namespace {

struct BenchGrouped {
  std::vector<std::string> sizes; ///< four of each problem; none: the suite
  FieldFlags<GroupedGemmProblem> fields; ///< the type
  BenchFlags flags;

  std::vector<GroupedGemmProblem> problems() const;
};

/// Groups of equal rows, so often in memory that the L2 cache holds nothing of
/// what the next launch needs.
class GroupedSets {
public:
  GroupedSets(Device &device, const GroupedGemmProblem &problem,
              std::uint64_t seed)
      : device_(device), problem_(problem),
        rows_(problem.groups, problem.rows / problem.groups),
        host_(problem, rows_, seed) {
    int count = buffer_sets(host_.bytes(), device.description());
    for (int i = 0; i < count; ++i)
      sets_.emplace_back(device, host_);
  }

  Contender contender(std::string name, const Kernel &kernel) const {
    Contender contender{std::move(name), {}};
    for (const GroupedBuffers &set : sets_)
      contender.launches.push_back(device_.prepare(
          resolve(kernel, set.arguments(kernel), device_.description())));
    return contender;
  }
  Contender contender(CublasGrouped &cublas) const {
    Contender contender{"cublas", {}};
    CublasGroups groups{rows_, problem_.n, problem_.k, problem_.type,
                        problem_.out};
    for (const GroupedBuffers &set : sets_)
      contender.launches.push_back(cublas.plan(groups, set.a, set.b, set.d));
    return contender;
  }

  Comparison verify(const Contender &contender) {
    return verified(device_, contender, sets_.front().d, [&] {
      sets_.front().fetch(device_, host_);
      return host_.compare(problem_, rows_);
    });
  }
  int count() const { return static_cast<int>(sets_.size()); }

private:
  Device &device_;
  const GroupedGemmProblem &problem_;
  std::vector<int> rows_;
  GroupedMatrices host_;
  std::vector<GroupedBuffers> sets_;
};

} // namespace

std::vector<GroupedGemmProblem> BenchGrouped::problems() const {
  constexpr std::size_t kEach = 4;
  if (sizes.size() % kEach)
    throw UserError(fmt::format("{} numbers; each has {}: groups, rows of "
                                "each, N and K",
                                sizes.size(), kEach));
  // Experts of large and of small batches.
  static const std::vector<std::string> kSuite = {
      "8",  "4096", "4096", "7168", //
      "64", "256",  "4096", "2048", //
      "64", "128",  "7168", "2048"};
  const std::vector<std::string> &all = sizes.empty() ? kSuite : sizes;
  std::vector<GroupedGemmProblem> problems;
  for (auto at = all.begin(); at != all.end(); at += kEach) {
    GroupedGemmProblem problem;
    set_sizes(problem, {at, at + kEach});
    fields.apply_to(problem);
    problem.check();
    std::int64_t rows = std::int64_t{problem.groups} * problem.rows;
    if (rows > std::numeric_limits<int>::max())
      throw UserError(fmt::format("{} groups of {} rows; at most {} rows in "
                                  "all are possible",
                                  problem.groups, problem.rows,
                                  std::numeric_limits<int>::max()));
    problem.rows = static_cast<int>(rows);
    problems.push_back(problem);
  }
  return problems;
}

static ProblemResult run_problem(BenchRun &bench, CublasGrouped *cublas,
                                 const GroupedGemmProblem &problem,
                                 bool is_suite) {
  ProblemResult result;
  result.problem = problem.to_string();
  result.suite = is_suite ? "grouped" : "";
  result.operations = 2.0 * problem.rows * double(problem.n) * problem.k;
  GroupedSets sets(*bench.device, problem, bench.flags.data_seed);
  bench.measure(
      sets, compile(build_grouped_gemm(problem)),
      [&](std::vector<Contender> &contenders) {
        if (cublas && problem.type == Type::e4m3)
          throw UserError("cuBLAS has no grouped product of e4m3");
        if (cublas)
          contenders.push_back(sets.contender(*cublas));
      },
      result);
  return result;
}

static ExitStatus run_command(const BenchGrouped &command) {
  std::vector<GroupedGemmProblem> problems = command.problems();
  std::shared_ptr<CublasGrouped> cublas;
  std::vector<BenchEntry> entries;
  for (const GroupedGemmProblem &problem : problems)
    entries.push_back({problem.to_string(), [&](BenchRun &bench) {
                         return run_problem(bench, cublas.get(), problem,
                                            command.sizes.empty());
                       }});
  return run_bench(command.flags, entries,
                   [&](Device &device, BenchReport &report) {
                     report.library = "cuBLAS";
                     cublas = open_cublas_grouped(device);
                     report.library_version = cublas->version();
                   });
}

void add_bench_grouped_gemm(Command bench,
                            std::function<ExitStatus()> &action) {
  Command command = bench.add_subcommand(
      "grouped-gemm", "measure products of groups beside cuBLAS");
  auto options = std::make_shared<BenchGrouped>();
  command.add_option("sizes", options->sizes,
                     "of each: groups, rows of each, N and K; none: three of "
                     "mixtures of experts");
  options->fields.add_to(command, {"type"});
  options->flags.add_to(command);
  command.callback([&action, options] {
    action = [options] { return run_command(*options); };
  });
}

} // namespace kiln::cli
