// Report: what came of launches, each finding once.
#include "kiln/check/report.h"
#include "kiln/base/file.h"
#include "support/Error.h"

#include <algorithm>
#include <fmt/ranges.h>

namespace kiln {

const char *name(Verdict verdict) {
  switch (verdict) {
  case Verdict::ok:
    return "ok";
  case Verdict::wrong:
    return "wrong";
  case Verdict::error:
    return "error";
  case Verdict::refused:
    return "refused";
  }
  internalError("verdict {} has no name", static_cast<int>(verdict));
}

/// Add the numbers of one run to those of others.
static void addNumbers(LaunchResult &sum, const LaunchResult &more) {
  sum.instructions += more.instructions;
  sum.time_us += more.time_us;
  sum.is_finished &= more.is_finished;
  sum.registers = more.registers;
  sum.registers_from = more.registers_from;
  sum.resident_ctas = more.resident_ctas;
  sum.stats.shadow_bytes =
      std::max(sum.stats.shadow_bytes, more.stats.shadow_bytes);
  sum.stats.costs.resize(
      std::max(sum.stats.costs.size(), more.stats.costs.size()));
  for (std::size_t i = 0; i < more.stats.costs.size(); ++i) {
    sum.stats.costs[i].name = more.stats.costs[i].name;
    sum.stats.costs[i].instructions += more.stats.costs[i].instructions;
    sum.stats.costs[i].time_us += more.stats.costs[i].time_us;
  }
}

/// Put a launch's events behind those of the launches before it.
static void append(Timeline &all, const Timeline &more) {
  std::uint64_t offset = 0;
  for (const Timeline::Event &event : all.events)
    offset = std::max(offset, event.end);
  for (Timeline::Event event : more.events) {
    event.start += offset;
    event.end += offset;
    all.events.push_back(std::move(event));
  }
}

template <typename Value>
static void addOnce(std::vector<Value> &list, const std::vector<Value> &more) {
  for (const Value &value : more)
    if (std::find(list.begin(), list.end(), value) == list.end())
      list.push_back(value);
}

/// Whether there is room for one more of that grade.
static bool hasRoom(const Report &report, Finding::Grade grade) {
  if (!report.max_findings || report.findings.size() < report.max_findings)
    return true;
  auto isAlike = [&](const Finding &finding) {
    return (finding.grade == Finding::Grade::error) ==
           (grade == Finding::Grade::error);
  };
  return static_cast<std::uint64_t>(
             std::count_if(report.findings.begin(), report.findings.end(),
                           isAlike)) < report.max_findings;
}

bool Report::merge(Finding finding, std::vector<std::size_t> &fresh) {
  std::string identity = finding.identity();
  auto known = known_.find(identity);
  if (known == known_.end()) {
    if (!hasRoom(*this, finding.grade)) {
      ++findings_left_out;
      return false;
    }
    known_.emplace(std::move(identity), findings.size());
    fresh.push_back(findings.size());
    findings.push_back(std::move(finding));
    return true;
  }
  Finding &first = findings[known->second];
  first.grade = std::max(first.grade, finding.grade);
  // Each interleaving is the same launch again: the largest count is what one
  // of them found.
  bool isSameLaunch = std::all_of(
      finding.launches.begin(), finding.launches.end(), [&](auto number) {
        return std::find(first.launches.begin(), first.launches.end(),
                         number) != first.launches.end();
      });
  first.count = isSameLaunch ? std::max(first.count, finding.count)
                             : first.count + finding.count;
  addOnce(first.launches, finding.launches);
  addOnce(first.interleavings, finding.interleavings);
  return false;
}

void Report::take(ReportedLaunch &launch, const LaunchResult &result,
                  const std::string &interleaving,
                  std::vector<std::size_t> &fresh) {
  // Each interleaving is the same launch again.
  std::uint64_t before = launch.result.findings_left_out;
  if (result.findings_left_out > before) {
    findings_left_out += result.findings_left_out - before;
    launch.result.findings_left_out = result.findings_left_out;
  }
  for (Finding finding : result.findings) {
    finding.kernel = launch.kernel;
    finding.launches = {launch.number};
    finding.interleavings = {interleaving};
    merge(std::move(finding), fresh);
  }
  if (launch.interleavings.empty())
    append(timeline, result.timeline);
  launch.interleavings.push_back(interleaving);
  addNumbers(launch.result, result);
  addNumbers(total_, result);
}

std::size_t Report::begin(ReportedLaunch launch) {
  ++launch_count;
  checked_count += launch.is_checked;
  if (!launch.number)
    launch.number = launch_count;
  launches.push_back(std::move(launch));
  return launches.size() - 1;
}

std::vector<std::size_t> Report::add(std::size_t first,
                                     const ExploredRun &run) {
  std::vector<std::size_t> fresh;
  for (std::size_t i = 0; i < run.launches.size(); ++i)
    take(launches.at(first + i), run.launches[i], run.interleaving.to_string(),
         fresh);
  return fresh;
}

std::vector<std::size_t> Report::add(ReportedLaunch launch,
                                     const Exploration &exploration) {
  launch.single_because = exploration.single_because;
  std::size_t index = begin(std::move(launch));
  bool isRemarkable = !is_brief;
  std::vector<std::size_t> fresh;
  for (const ExploredRun &run : exploration.runs) {
    std::vector<std::size_t> more = add(index, run);
    fresh.insert(fresh.end(), more.begin(), more.end());
    for (const LaunchResult &result : run.launches)
      isRemarkable |= !result.findings.empty() || !result.is_finished ||
                      result.instructions == 0;
  }
  if (!isRemarkable)
    launches.pop_back();
  return fresh;
}

bool Report::add(Finding finding) {
  std::vector<std::size_t> fresh;
  return merge(std::move(finding), fresh);
}

void Report::refuse(const Error &error) {
  refusal = error.what();
  add({.id = "refused",
       .message = error.message(),
       .where = error.where(),
       .ptx_line = static_cast<int>(error.where().line)});
}

Verdict Report::verdict() const {
  if (!refusal.empty())
    return Verdict::refused;
  for (const Finding &finding : findings)
    if (finding.grade == Finding::Grade::error)
      return Verdict::error;
  for (const ReportedComparison &comparison : comparisons)
    if (comparison.wrong)
      return Verdict::wrong;
  return Verdict::ok;
}

ExitStatus Report::exit_status() const {
  switch (verdict()) {
  case Verdict::ok:
    return ExitStatus::ok;
  case Verdict::wrong:
    return ExitStatus::wrong;
  case Verdict::error:
    return ExitStatus::finding;
  case Verdict::refused:
    return ExitStatus::refused;
  }
  return ExitStatus::internal;
}

std::string Report::to_text() const {
  std::string text;
  for (const Finding &finding : findings)
    text += finding.to_string() + '\n';
  if (findings_left_out)
    text += findings_left_out_text(findings_left_out) + '\n';
  text += total_.to_string();
  for (const ReportedComparison &comparison : comparisons)
    text += fmt::format("{}{}{}: {} of {} elements are wrong ({})\n",
                        comparison.what, comparison.name.empty() ? "" : " ",
                        comparison.name, comparison.wrong, comparison.elements,
                        comparison.interleaving);
  return text + fmt::format("verdict: {}\n", name(verdict()));
}

void Report::save(const std::string &path) const {
  write_file(path, {path.ends_with(".sarif") ? to_sarif()
                    : path.ends_with(".txt") ? to_text()
                                             : to_json()});
}

} // namespace kiln
