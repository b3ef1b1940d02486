// run_litmus: litmus tests on the simulator, in every interleaving that is
// asked for, and on a GPU, many at once.
#include "litmus_kernel.h"

#include "support/Error.h"

#include <algorithm>
#include <cstring>
#include <set>

namespace kiln::cli {

using Words = std::vector<std::uint32_t>;
using Kind = LitmusTest::Variable::Kind;

const char *name(LitmusVerdict verdict) {
  static constexpr const char *kNames[] = {
      "agrees", "stronger", "forbidden outcome seen", "finding missing",
      "finding unexpected"};
  return kNames[static_cast<int>(verdict)];
}

std::uint64_t LitmusResult::count(const LitmusTest &test) const {
  std::uint64_t count = 0;
  for (const auto &[values, times] : outcomes)
    count += test.holds(values) ? times : 0;
  return count;
}

LitmusVerdict judge_outcomes(const LitmusTest &test,
                             const LitmusResult &result) {
  if (test.expectation == LitmusExpectation::undefined)
    return LitmusVerdict::agrees;
  bool is_seen = result.count(test) != 0;
  if (test.expectation == LitmusExpectation::forbidden)
    return is_seen ? LitmusVerdict::forbidden_seen : LitmusVerdict::agrees;
  return is_seen ? LitmusVerdict::agrees : LitmusVerdict::stronger;
}

LitmusVerdict judge(const LitmusTest &test, const LitmusResult &result) {
  bool is_named = test.findings.empty();
  for (const Finding &finding : result.findings) {
    bool is_expected = std::find(test.findings.begin(), test.findings.end(),
                                 finding.id) != test.findings.end();
    is_named |= is_expected;
    if (!is_expected && finding.grade == Finding::Grade::error)
      return LitmusVerdict::finding_unexpected;
  }
  if (!is_named)
    return LitmusVerdict::finding_missing;
  // What the machine does not show itself, its finding tells of.
  bool is_told =
      test.expectation == LitmusExpectation::allowed && !test.findings.empty();
  return is_told ? LitmusVerdict::agrees : judge_outcomes(test, result);
}

namespace {

/// Memory of so many instances, and what they begin with.
class Instances {
public:
  Instances(Device &device, const LitmusTest &test, std::size_t count)
      : device_(device), test_(test), count_(count),
        stride_bytes_(kMeetingBytes + test.global_bytes()),
        first_(count * stride_bytes_ / 4),
        variables_(device.allocate(first_.size() * 4)),
        results_(device.allocate(result_words() * 4)) {
    std::size_t offset = kMeetingBytes;
    for (const LitmusTest::Variable &variable : test.variables) {
      if (variable.kind != Kind::global)
        continue;
      for (std::size_t i = 0; i < count; ++i)
        std::fill_n(first_.begin() + static_cast<std::ptrdiff_t>(
                                         (i * stride_bytes_ + offset) / 4),
                    variable.bytes / 4, variable.value);
      offset += (variable.bytes + 127) / 128 * 128;
    }
    device.set_name(variables_, "variables");
    device.set_name(results_, "results");
  }

  void reset() {
    device_.copy_in(variables_, first_.data(), first_.size() * 4);
    device_.fill(results_, 0);
  }
  std::uint64_t variables(std::size_t instance) const {
    return variables_.address() + instance * stride_bytes_;
  }
  /// Of the launch number `launch`, of `each` instances.
  std::uint64_t results(std::size_t launch, std::size_t each) const {
    return results_.address() + launch * each * instance_words() * 4;
  }
  /// Add what launches of `each` instances have left.
  void collect(std::size_t each, LitmusResult &to);

private:
  /// The registers of all threads, and the shared variables.
  std::size_t instance_words() const {
    return (test_.threads.size() + 1) * kLitmusRegisters;
  }
  std::size_t result_words() const { return count_ * instance_words(); }

  Device &device_;
  const LitmusTest &test_;
  std::size_t count_, stride_bytes_;
  Words first_;
  Buffer variables_, results_;
};

} // namespace

/// Where the first word of a global variable is; nothing of a shared one.
static std::optional<std::size_t> global_offset(const LitmusTest &test,
                                                const std::string &name) {
  std::size_t offset = kMeetingBytes;
  for (const LitmusTest::Variable &variable : test.variables) {
    if (variable.kind != Kind::global)
      continue;
    if (variable.name == name)
      return offset;
    offset += (variable.bytes + 127) / 128 * 128;
  }
  return std::nullopt;
}

void Instances::collect(std::size_t each, LitmusResult &to) {
  Words variables(first_.size()), results(result_words());
  device_.copy_out(variables.data(), variables_, variables.size() * 4);
  device_.copy_out(results.data(), results_, results.size() * 4);
  std::size_t threads = test_.threads.size();
  for (std::size_t i = 0; i < count_; ++i) {
    std::size_t launch = i / each, instance = i % each;
    const std::uint32_t *mine =
        results.data() + launch * each * instance_words();
    Words values;
    std::size_t shared = 0;
    for (const LitmusTest::Observed &what : test_.observed) {
      if (what.thread >= 0)
        values.push_back(
            mine[(instance * threads + static_cast<std::size_t>(what.thread)) *
                     kLitmusRegisters +
                 static_cast<std::size_t>(what.name[1] - '0')]);
      else if (auto offset = global_offset(test_, what.name))
        values.push_back(variables[(i * stride_bytes_ + *offset) / 4]);
      else
        values.push_back(
            mine[(each * threads + instance) * kLitmusRegisters + shared++]);
    }
    ++to.outcomes[values];
  }
}

static LaunchDescription launch_of(const LitmusTest &test,
                                   const std::shared_ptr<LoadedModule> &module,
                                   int instances) {
  LaunchDescription launch;
  launch.name = "litmus";
  launch.module = module;
  auto ctas = static_cast<std::uint32_t>(test.ctas);
  launch.grid = {ctas * static_cast<std::uint32_t>(instances), 1, 1};
  launch.block = {static_cast<std::uint32_t>(32 * test.warps()), 1, 1};
  if (test.is_cluster)
    launch.cluster = {ctas, 1, 1};
  return launch;
}

static LaunchParameter address(std::uint64_t value) {
  return {Scalar(Type::u64, value)};
}

LitmusResult run_litmus(Device &device, const LitmusTest &test,
                        const ExploreOptions &options) {
  LitmusResult result;
  std::string text = test.ptx(/*is_stress=*/false);
  std::string_view texts[] = {text};
  std::shared_ptr<LoadedModule> module = device.load(texts);
  Instances memory(device, test, 1);
  memory.reset();
  LaunchDescription launch = launch_of(test, module, 1);
  launch.parameters = {address(memory.variables(0)),
                       address(memory.results(0, 1)),
                       {Scalar(Type::u32, 0)}};
  std::set<std::string> known;
  Exploration seen =
      explore(device, std::span(&launch, 1), options, [&](ExploredRun &run) {
        ++result.runs;
        for (const LaunchResult &ended : run.launches)
          for (const Finding &finding : ended.findings)
            if (known.insert(finding.identity()).second)
              result.findings.push_back(finding);
        if (run.is_finished)
          memory.collect(1, result);
      });
  result.single_because = seen.single_because;
  return result;
}

LitmusResult stress_litmus(Device &device, const LitmusTest &test,
                           const LitmusStress &stress) {
  LitmusResult result;
  std::string text = test.ptx(/*is_stress=*/true);
  std::string_view texts[] = {text};
  std::shared_ptr<LoadedModule> module = device.load(texts);
  auto each = static_cast<std::size_t>(stress.instances);
  auto launches = static_cast<std::size_t>(stress.launches);
  Instances memory(device, test, each * launches);
  memory.reset();
  LaunchDescription launch = launch_of(test, module, stress.instances);
  for (std::size_t i = 0; i < launches; ++i) {
    launch.parameters = {
        address(memory.variables(i * each)),
        address(memory.results(i, each)),
        {Scalar(Type::u32, stress.seed + static_cast<std::uint32_t>(i))}};
    device.enqueue(launch);
  }
  device.synchronize();
  memory.collect(each, result);
  result.runs = each * launches;
  return result;
}

} // namespace kiln::cli
