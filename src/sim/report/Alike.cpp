// Alike: one finding for each source line and kind. A loop that was unrolled,
// or a function that was inlined twice, is many instructions and one defect.
#include "sim/report/Alike.h"

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

} // namespace kiln::sim
