// Report: what came of launches, each finding once.
#include "kiln/check/report.h"
#include "kiln/base/file.h"
#include "support/Error.h"
#include "support/text/SourceText.h"

#include <algorithm>
#include <set>
#include <utility>
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

static void keepProfile(std::vector<Profile> &profiles,
                        const ReportedLaunch &launch,
                        const LaunchResult &result) {
  if (!result.profile)
    return;
  Profile profile = *result.profile;
  profile.kernel = launch.kernel;
  profile.launches = {launch.number};
  add_profile(profiles, std::move(profile));
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

/// What makes two findings one cause: both places, whichever of the accesses came
/// first. What is missing between them is the same.
static std::string causeOf(const Finding &finding) {
  std::string own = finding.identity();
  if (!finding.other)
    return own;
  Finding turned{.id = finding.id,
                 .where = finding.other->where,
                 .ptx_line = finding.other->ptx_line,
                 .other = Finding::Other{.where = finding.where,
                                         .ptx_line = finding.ptx_line}};
  return std::min(own, turned.identity());
}

/// Of one cause people want to read what was read too early rather than what was
/// written too early.
static bool isPlainer(const Finding &finding, const Finding &other) {
  return finding.other && other.other && finding.other->is_write &&
         !other.other->is_write;
}

bool Report::merge(Finding finding, std::vector<std::size_t> &fresh) {
  std::string identity = causeOf(finding);
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
  bool isUntold =
      std::find(fresh.begin(), fresh.end(), known->second) != fresh.end();
  if (isUntold && isPlainer(finding, first))
    std::swap(first, finding);
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
  std::size_t known = fresh.size();
  for (Finding finding : result.findings) {
    finding.kernel = launch.kernel;
    finding.launches = {launch.number};
    finding.interleavings = {interleaving};
    merge(std::move(finding), fresh);
  }
  keepDetail(launch, result, interleaving, fresh.size() > known);
  if (launch.interleavings.empty()) {
    append(timeline, result.timeline);
    keepProfile(profiles, launch, result);
  }
  launch.interleavings.push_back(interleaving);
  addNumbers(launch.result, result);
  addNumbers(total_, result);
}

/// Interleavings of one launch whose details are kept.
static constexpr std::size_t kMostDetails = 2;

void Report::keepDetail(ReportedLaunch &launch, const LaunchResult &result,
                        const std::string &interleaving, bool hasFresh) {
  launch.result.detail = nullptr;
  if (!result.detail)
    return;
  // Where the first interleaving shows nothing, one that does is worth more.
  bool isFirst = launch.details.empty();
  if (!isFirst && !hasFresh)
    return;
  if (launch.details.size() == kMostDetails)
    return;
  if (!isFirst && !launch.details.back().is_telling)
    launch.details.pop_back();
  ReportedLaunch::Detail kept{interleaving, *result.detail, hasFresh};
  kept.detail.listing = {};
  const Listing &listing = result.detail->listing;
  auto isIt = [&](const Listing &known) {
    return known.kernel == launch.kernel && known.lines == listing.lines;
  };
  auto found = std::find_if(listings.begin(), listings.end(), isIt);
  launch.listing = static_cast<std::size_t>(found - listings.begin());
  if (found == listings.end()) {
    listings.push_back(listing);
    listings.back().kernel = launch.kernel;
    readSources();
  }
  launch.details.push_back(std::move(kept));
}

/// Lines around those that a listing names.
static constexpr unsigned kAround = 3;

void Report::readSources() {
  std::map<std::string, std::set<unsigned>> wanted;
  auto want = [&](const SourceLine &where) {
    if (where.is_known() && where.line && isSource(where.file))
      for (unsigned i = 0; i <= 2 * kAround; ++i)
        if (where.line + i > kAround)
          wanted[where.file].insert(where.line + i - kAround);
  };
  for (const Listing::Line &line : listings.back().lines) {
    want(line.where);
    for (const Finding::Frame &frame : line.stack)
      want(frame.where);
  }
  for (const auto &[file, numbers] : wanted) {
    const std::vector<std::string> &lines = sourceLines(file);
    if (lines.empty())
      continue;
    auto known = std::find_if(sources.begin(), sources.end(),
                              [&](const auto &one) { return one.file == file; });
    if (known == sources.end())
      known = sources.insert(sources.end(), {file, {}});
    for (unsigned number : numbers)
      if (number <= lines.size())
        known->lines[number] = lines[number - 1];
  }
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

void Report::merge(const Report &other) {
  // Numbers of shards are of one list; others are moved behind these.
  std::set<std::uint64_t> taken;
  std::uint64_t last = 0, offset = 0;
  for (const ReportedLaunch &launch : launches) {
    taken.insert(launch.number);
    last = std::max(last, launch.number);
  }
  for (const ReportedLaunch &launch : other.launches)
    if (taken.contains(launch.number))
      offset = last;
  std::size_t firstListing = listings.size();
  listings.insert(listings.end(), other.listings.begin(), other.listings.end());
  for (const SourceExcerpt &source : other.sources) {
    auto known =
        std::find_if(sources.begin(), sources.end(),
                     [&](const auto &one) { return one.file == source.file; });
    if (known == sources.end())
      sources.push_back(source);
    else
      known->lines.insert(source.lines.begin(), source.lines.end());
  }
  for (ReportedLaunch launch : other.launches) {
    launch.number += offset;
    launch.listing += firstListing;
    launches.push_back(std::move(launch));
  }
  std::stable_sort(launches.begin(), launches.end(),
                   [](const auto &a, const auto &b) { return a.number < b.number; });
  // In the order of the launches, whoever was first.
  std::vector<Finding> all = std::exchange(findings, {});
  for (Finding finding : other.findings) {
    for (std::uint64_t &number : finding.launches)
      number += offset;
    all.push_back(std::move(finding));
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Finding &a, const Finding &b) {
                     return a.launches < b.launches;
                   });
  known_.clear();
  std::vector<std::size_t> fresh;
  for (Finding &finding : all)
    if (finding.where.is_known() || finding.ptx_line)
      merge(std::move(finding), fresh);
    else // of a whole launch file
      findings.push_back(std::move(finding));
  for (Finding &finding : findings)
    std::sort(finding.launches.begin(), finding.launches.end());
  comparisons.insert(comparisons.end(), other.comparisons.begin(),
                     other.comparisons.end());
  std::stable_sort(comparisons.begin(), comparisons.end(),
                   [](const auto &a, const auto &b) { return a.file < b.file; });
  findings_left_out += other.findings_left_out;
  launch_count += other.launch_count;
  checked_count += other.checked_count;
  if (refusal.empty())
    refusal = other.refusal;
  bool isFirst = total_.instructions == 0 && total_.time_us == 0;
  if (isFirst)
    total_ = other.total_;
  else
    addNumbers(total_, other.total_);
}

void Report::set_file(const std::string &file, std::uint64_t first) {
  std::uint64_t before = launches.empty() ? first : launches.front().number;
  for (ReportedLaunch &launch : launches) {
    launch.file = file;
    launch.number += first - before;
  }
  for (Finding &finding : findings)
    for (std::uint64_t &number : finding.launches)
      number += first - before;
  for (ReportedComparison &comparison : comparisons)
    comparison.file = file;
  for (Finding &finding : findings)
    if (finding.launches.empty())
      for (const ReportedLaunch &launch : launches)
        finding.launches.push_back(launch.number);
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

bool shows_detail(const std::string &path) {
  return !path.empty() && !path.ends_with(".sarif") &&
         !path.ends_with(".xml") && !path.ends_with(".txt");
}

void Report::save(const std::string &path) const {
  write_file(path, {path.ends_with(".html")    ? to_html()
                    : path.ends_with(".sarif") ? to_sarif()
                    : path.ends_with(".xml")   ? to_junit()
                    : path.ends_with(".txt")   ? to_text()
                                               : to_json()});
}

} // namespace kiln
