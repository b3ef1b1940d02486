// Alike: one finding for each source line and kind. A loop that was unrolled,
// or a function that was inlined twice, is many instructions and one defect.
#include "sim/report/Alike.h"

#include <algorithm>
#include <map>

namespace kiln::sim {

void joinAlike(std::vector<Finding> &findings, bool hasEnd) {
  std::map<std::string, std::size_t> first;
  std::vector<Finding> joined;
  std::size_t count = findings.size() - (hasEnd && !findings.empty());
  for (std::size_t i = 0; i < count; ++i) {
    Finding &finding = findings[i];
    auto [known, isNew] =
        first.try_emplace(finding.identity(), joined.size());
    if (isNew)
      joined.push_back(std::move(finding));
    else
      joined[known->second].count += finding.count;
  }
  if (count < findings.size())
    joined.push_back(std::move(findings.back()));
  findings = std::move(joined);
}

void keepMost(std::vector<Finding> &findings, std::uint64_t most, bool hasEnd,
              FindingQuota &leftOut) {
  if (!most || findings.size() <= most)
    return;
  auto isError = [](const Finding &finding) {
    return finding.grade == Finding::Grade::error;
  };
  auto end = findings.end() - hasEnd;
  auto errors =
      static_cast<std::uint64_t>(std::count_if(findings.begin(), end, isError));
  std::uint64_t others = most - hasEnd;
  std::uint64_t room[] = {others - std::min(errors, others),
                          std::min(errors, others)};
  std::vector<Finding> kept;
  for (auto finding = findings.begin(); finding != end; ++finding) {
    std::uint64_t &left = room[isError(*finding)];
    if (left > 0) {
      --left;
      kept.push_back(std::move(*finding));
    } else {
      leftOut.leaveOut(finding->identity());
    }
  }
  if (hasEnd)
    kept.push_back(std::move(findings.back()));
  findings = std::move(kept);
}

} // namespace kiln::sim
