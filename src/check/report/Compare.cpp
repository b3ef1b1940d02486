// Compare: what came, went and changed between two reports.
#include "kiln/check/report.h"
#include "support/Hash.h"

#include <algorithm>
#include <cctype>
#include <deque>
#include <fmt/format.h>

namespace kiln {

/// An instruction without the numbers of its registers and labels, which change
/// with every line that is added anywhere in a kernel.
static std::string withoutNumbers(const std::string &instruction) {
  std::string text;
  bool isName = false; // a register or a label, up to its digits
  for (char c : instruction) {
    bool isDigit = c >= '0' && c <= '9';
    if (c == '%' || c == '$')
      isName = true;
    else if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_')
      isName = false;
    if (!isName || !isDigit)
      text += c;
  }
  return text;
}

std::string fingerprint(const Finding &finding) {
  std::string text = fmt::format("{}|{}|{}", finding.id, finding.where.file,
                                 withoutNumbers(finding.instruction));
  for (const Finding::Frame &frame : finding.stack)
    text += "|" + frame.function;
  if (finding.other)
    text += fmt::format("|{}|{}", finding.other->where.file,
                        finding.other->is_write);
  return hashHex(text);
}

/// What is different between two findings of one fingerprint; empty: nothing
/// but places.
static std::string changeOf(const Finding &before, const Finding &after) {
  std::string text;
  auto add = [&](const std::string &sentence) {
    text += (text.empty() ? "" : "; ") + sentence;
  };
  if (before.grade != after.grade)
    add(fmt::format("its grade was {} and is {}", name(before.grade),
                    name(after.grade)));
  if (before.count != after.count)
    add(fmt::format("it was found {} times and is found {} times",
                    before.count, after.count));
  if (before.launches.size() != after.launches.size())
    add(fmt::format("{} launches showed it and {} show it",
                    before.launches.size(), after.launches.size()));
  return text;
}

ReportComparison compare_reports(const Report &before, const Report &after) {
  ReportComparison result;
  // One instruction may be in many lines: the first goes with the first.
  std::map<std::string, std::deque<const Finding *>> known;
  for (const Finding &finding : before.findings)
    known[fingerprint(finding)].push_back(&finding);
  for (const Finding &finding : after.findings) {
    auto &same = known[fingerprint(finding)];
    if (same.empty()) {
      result.came.push_back(&finding);
      continue;
    }
    const Finding *old = same.front();
    same.pop_front();
    std::string what = changeOf(*old, finding);
    if (what.empty())
      ++result.kept;
    else
      result.changed.push_back({old, &finding, what});
  }
  for (const Finding &finding : before.findings) {
    auto &left = known[fingerprint(finding)];
    if (std::find(left.begin(), left.end(), &finding) != left.end())
      result.went.push_back(&finding);
  }
  return result;
}

bool ReportComparison::has_new_errors() const {
  auto isError = [](const Finding *finding) {
    return finding->grade == Finding::Grade::error;
  };
  return std::any_of(came.begin(), came.end(), isError) ||
         std::any_of(changed.begin(), changed.end(), [](const Change &change) {
           return change.after->grade == Finding::Grade::error &&
                  change.before->grade != Finding::Grade::error;
         });
}

std::string ReportComparison::to_text() const {
  std::string text;
  for (const Finding *finding : came)
    text += fmt::format("came    {}\n", finding->to_string());
  for (const Finding *finding : went)
    text += fmt::format("went    {}\n", finding->to_string());
  for (const Change &change : changed)
    text += fmt::format("changed {}\n  {}\n", change.after->to_string(),
                        change.what);
  return text + fmt::format("{} came, {} went, {} changed, {} stayed\n",
                            came.size(), went.size(), changed.size(), kept);
}

} // namespace kiln
