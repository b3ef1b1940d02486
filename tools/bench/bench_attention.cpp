// bench_attention: attention beside cuDNN.
#include "bench_run.h"
#include "kernels/attention_tensors.h"
#include "options/field_flags.h"

#include <kiln/measure/cudnn.h>

#include <algorithm>
#include <fmt/format.h>

namespace kiln::cli {

/// Multiplications of the reference: some rows of each problem.
static constexpr std::int64_t kCompared = std::int64_t{1} << 27;

namespace {

struct BenchAttention {
  std::vector<std::string> sizes;      ///< six of each problem; none: the suite
  FieldFlags<AttentionProblem> fields; ///< the mask and the type
  BenchFlags flags;

  std::vector<AttentionProblem> problems() const;
};

/// The memory of one attention, so often that the L2 cache holds nothing of
/// what the next launch needs.
class AttentionSets {
public:
  AttentionSets(Device &device, const AttentionProblem &problem,
                std::uint64_t seed)
      : device_(device), problem_(problem), host_(problem, {}, seed) {
    int count = buffer_sets(host_.bytes(), device.description());
    for (int i = 0; i < count; ++i)
      sets_.emplace_back(device, host_);
  }

  Contender contender(std::string name, const Kernel &kernel) const {
    Contender contender{std::move(name), {}};
    for (const AttentionBuffers &set : sets_)
      contender.launches.push_back(device_.prepare(
          resolve(kernel, set.arguments(kernel), device_.description())));
    return contender;
  }
  Contender contender(const std::shared_ptr<CudnnPlan> &plan) const {
    Contender contender{"cudnn", {}};
    for (const AttentionBuffers &set : sets_)
      contender.launches.push_back(
          [plan, operands = CudnnOperands{set.q, set.k, set.v, set.o}](
              const Stream &stream) { plan->enqueue(operands, stream); });
    return contender;
  }

  /// Run it on the first set and compare O, and lse where Kiln wrote it, which
  /// is first.
  Comparison verify(const Contender &contender) {
    return verified(device_, contender, sets_.front().o, [&] {
      sets_.front().fetch(device_, host_);
      return host_.compare(problem_, kCompared);
    });
  }
  int count() const { return static_cast<int>(sets_.size()); }

private:
  Device &device_;
  const AttentionProblem &problem_;
  AttentionTensors host_;
  std::vector<AttentionBuffers> sets_;
};

} // namespace

/// 16384 tokens, as attention is measured.
static std::vector<AttentionProblem> suite() {
  constexpr int kTokens = 16384, kWidth = 2048;
  std::vector<AttentionProblem> problems;
  for (int head_dim : {64, 128, 256})
    for (int length : {1024, 4096, 16384})
      for (bool is_causal : {false, true})
        problems.push_back({.batch = kTokens / length,
                            .heads = kWidth / head_dim,
                            .queries = length,
                            .keys = length,
                            .head_dim = head_dim,
                            .is_causal = is_causal});
  return problems;
}

std::vector<AttentionProblem> BenchAttention::problems() const {
  constexpr std::size_t kEach = 6;
  if (sizes.size() % kEach)
    throw UserError(fmt::format("{} numbers; each attention has {}: sequences, "
                                "heads, key heads, queries, keys, and the head "
                                "dimension",
                                sizes.size(), kEach));
  std::vector<AttentionProblem> problems;
  for (auto at = sizes.begin(); at != sizes.end(); at += kEach)
    set_sizes(problems.emplace_back(), {at, at + kEach});
  if (sizes.empty())
    problems = suite();
  for (AttentionProblem &problem : problems) {
    fields.apply_to(problem);
    problem = problem.resolved();
  }
  return problems;
}

static CudnnAttention in_cudnn(const AttentionProblem &problem) {
  return {.batch = problem.batch,
          .heads = problem.heads,
          .kv_heads = problem.kv_heads,
          .queries = problem.queries,
          .keys = problem.keys,
          .head_dim = problem.head_dim,
          .type = problem.type,
          .is_causal = problem.is_causal,
          .scale = static_cast<float>(problem.scale)};
}

static ProblemResult run_problem(BenchRun &bench, Cudnn *cudnn,
                                 const AttentionProblem &problem,
                                 bool is_suite) {
  ProblemResult result;
  result.problem = problem.to_string();
  result.suite = is_suite ? "attention" : "";
  result.compared = "rows";
  result.operations = problem.operations();
  AttentionSets sets(*bench.device, problem, bench.flags.data_seed);
  bench.measure(
      sets, compile(build_attention(problem)),
      [&](std::vector<Contender> &contenders) {
        if (cudnn)
          contenders.push_back(sets.contender(cudnn->plan(in_cudnn(problem))));
      },
      result);
  return result;
}

static ExitStatus run_command(const BenchAttention &command) {
  std::vector<AttentionProblem> problems = command.problems();
  std::shared_ptr<Cudnn> cudnn;
  std::vector<BenchEntry> entries;
  for (const AttentionProblem &problem : problems)
    entries.push_back({problem.to_string(), [&](BenchRun &bench) {
                         return run_problem(bench, cudnn.get(), problem,
                                            command.sizes.empty());
                       }});
  return run_bench(command.flags, entries,
                   [&](Device &device, BenchReport &report) {
                     report.library = "cuDNN";
                     cudnn = open_cudnn(device);
                     report.library_version = cudnn->version();
                   });
}

void add_bench_attention(Command bench, std::function<ExitStatus()> &action) {
  Command command =
      bench.add_subcommand("attention", "measure attention beside cuDNN");
  auto options = std::make_shared<BenchAttention>();
  command.add_option("sizes", options->sizes,
                     "of each: sequences, heads, key heads, queries, keys and "
                     "the head dimension; none: 16384 tokens in 18 ways");
  options->fields.add_to(command, {"causal", "type"});
  options->flags.add_to(command);
  command.callback([&action, options] {
    action = [options] { return run_command(*options); };
  });
}

} // namespace kiln::cli
