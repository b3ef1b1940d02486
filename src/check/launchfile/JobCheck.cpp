// JobCheck: explore the launches of a job, and hold what each interleaving
// gives against what is expected, and against what the first one gave.
#include "kiln/check/explanation.h"
#include "kiln/check/launch_file.h"
#include "support/Error.h"

#include <algorithm>

namespace kiln {

using Lines = std::vector<std::string>;

static Lines sortedLines(const std::string &text) {
  Lines lines;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

static Lines differenceOf(const Lines &all, const Lines &others) {
  Lines difference;
  std::set_difference(all.begin(), all.end(), others.begin(), others.end(),
                      std::back_inserter(difference));
  return difference;
}

static JobComparison comparePrinted(Lines want, const JobRun &run) {
  std::sort(want.begin(), want.end());
  Lines missing = differenceOf(want, run.printed);
  Lines extra = differenceOf(run.printed, want);
  JobComparison result{.row = {.what = "printf",
                               .interleaving = run.run.interleaving.to_string(),
                               .elements = want.size(),
                               .wrong = missing.size() + extra.size()}};
  if (!missing.empty())
    result.wrong.push_back(
        fmt::format("printf: {} lines are missing, the first '{}'",
                    missing.size(), missing[0]));
  if (!extra.empty())
    result.wrong.push_back(
        fmt::format("printf: {} lines are not expected, the first '{}'",
                    extra.size(), extra[0]));
  if (result.wrong.empty())
    result.summary = fmt::format("printf: {} lines, all right", want.size());
  return result;
}

static JobComparison compareExpected(const BufferSpec &buffer,
                                     const LaunchJob::Bytes &got,
                                     const LaunchJob::Bytes &want,
                                     const JobRun &run) {
  BufferComparison compared = compare_buffer(buffer, got, want);
  std::string verdict =
      compared.wrong ? fmt::format("{} of {} elements are wrong",
                                   compared.wrong, buffer.count())
                     : fmt::format("{} elements, all right", buffer.count());
  return {.row = {.what = "buffer",
                  .name = buffer.name,
                  .interleaving = run.run.interleaving.to_string(),
                  .elements = buffer.count(),
                  .wrong = compared.wrong},
          .wrong = std::move(compared.first),
          .summary = fmt::format("{}: {}", buffer.name, verdict)};
}

namespace {

/// A job while it is explored.
class JobCheck {
public:
  JobCheck(const PreparedJob &job, const ExploreOptions &options)
      : job_(job), options_(options) {
    checked_.report.max_findings = options.sim.max_findings;
    for (ReportedLaunch &launch : job.launches())
      checked_.report.begin(std::move(launch));
  }
  void take(ExploredRun &run, const AfterJobRun &after);
  CheckedJob finish(const Exploration &exploration);

private:
  void compare(JobRun &run);
  void compareWithFirst(JobRun &run);
  void addDependent(JobRun &run, bool isError, const std::string &what);

  const PreparedJob &job_;
  const ExploreOptions &options_;
  CheckedJob checked_;
  bool isFirst_ = true;
  std::string first_; ///< interleaving
  Lines firstPrinted_;
};

} // namespace

void JobCheck::compare(JobRun &run) {
  const LaunchJob &job = job_.job();
  for (std::size_t i = 0; i < run.memory.size(); ++i)
    if (job.expected[i])
      run.comparisons.push_back(compareExpected(
          job.file.buffers[i], run.memory[i], *job.expected[i], run));
  if (job.file.printed)
    run.comparisons.push_back(comparePrinted(*job.file.printed, run));
  for (const JobComparison &comparison : run.comparisons)
    checked_.report.comparisons.push_back(comparison.row);
}

void JobCheck::addDependent(JobRun &run, bool isError,
                            const std::string &what) {
  const Explanation &row =
      explain(isError ? "order-dependent" : "order-rounding");
  auto isIn = [&](const std::vector<std::string> &ids) {
    return std::find(ids.begin(), ids.end(), row.id) != ids.end();
  };
  if (isIn(options_.sim.allow))
    return;
  std::string interleaving = run.run.interleaving.to_string();
  Finding finding{
      .id = std::string(row.id),
      .grade = isError && isIn(options_.sim.warn) ? Finding::Grade::warning
                                                  : row.grade,
      .message = fmt::format("{} between the interleavings '{}' and '{}'", what,
                             first_, interleaving)};
  finding.interleavings = {interleaving};
  if (checked_.report.add(std::move(finding)))
    run.dependent.push_back(checked_.report.findings.size() - 1);
}

/// Results that depend on the interleaving are a fault where the file says they
/// may not, or where they are further apart than it allows.
void JobCheck::compareWithFirst(JobRun &run) {
  const LaunchFile &file = job_.job().file;
  for (std::size_t i = 0; i < run.memory.size(); ++i) {
    const LaunchJob::Bytes &first = checked_.memory[i];
    if (run.memory[i] == first)
      continue;
    const BufferSpec &buffer = file.buffers[i];
    BufferSpec bitwise = buffer;
    bitwise.tolerance = {.is_exact = true};
    bool isOutside = buffer.tolerance.is_given &&
                     compare_buffer(buffer, run.memory[i], first).wrong;
    addDependent(
        run, file.is_deterministic || isOutside,
        fmt::format("{} of {} elements of '{}' differ{}",
                    compare_buffer(bitwise, run.memory[i], first).wrong,
                    buffer.count(), buffer.name,
                    isOutside ? " by more than its tolerance" : ""));
  }
  if (run.printed != firstPrinted_)
    addDependent(run, file.is_deterministic, "the printed lines differ");
}

void JobCheck::take(ExploredRun &explored, const AfterJobRun &after) {
  for (LaunchResult &result : explored.launches)
    for (Finding &finding : result.findings)
      job_.name_places(finding);
  JobRun run{.run = explored,
             .printed = sortedLines(explored.printed),
             .memory = job_.memory()};
  run.findings = checked_.report.add(0, explored);
  // What an error cut short is not compared, unless the error is a warning.
  run.is_compared =
      explored.is_finished || checked_.report.verdict() != Verdict::error;
  if (run.is_compared) {
    compare(run);
    if (!isFirst_)
      compareWithFirst(run);
  }
  if (after)
    after(checked_.report, run);
  if (isFirst_) {
    isFirst_ = false;
    first_ = explored.interleaving.to_string();
    firstPrinted_ = std::move(run.printed);
    checked_.memory = std::move(run.memory);
  }
}

CheckedJob JobCheck::finish(const Exploration &exploration) {
  checked_.single_because = exploration.single_because;
  for (ReportedLaunch &launch : checked_.report.launches)
    launch.single_because = exploration.single_because;
  return std::move(checked_);
}

CheckedJob check_job(const PreparedJob &job, const ExploreOptions &options,
                     const AfterJobRun &after) {
  ExploreOptions asked = options;
  asked.sim = job.job().sim_options(options.sim);
  JobCheck check(job, asked);
  return check.finish(
      explore(job.device(), job.descriptions(), asked,
              [&](ExploredRun &run) { check.take(run, after); }));
}

} // namespace kiln
