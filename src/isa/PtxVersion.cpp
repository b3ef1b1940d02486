// PtxVersion: the table of versions, of the PTX ISA's release notes.
#include "isa/PtxVersion.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <vector>

namespace kiln::isa {

static constexpr int kVersions[] = {
    10, 11, 12, 13, 14, 15, 20, 21, 22, 23, 30, 31, 32, 40, 41, 42,
    43, 50, 60, 61, 62, 63, 64, 65, 70, 71, 72, 73, 74, 75, 76, 77,
    78, 80, 81, 82, 83, 84, 85, 86, 87, 88, 90, 91, 92, 93, 94};

int newestPtxVersion() { return *std::rbegin(kVersions); }

bool isWritablePtxVersion(int version) {
  return version >= kOldestWritable && version <= kNewestWritable &&
         std::ranges::find(kVersions, version) != std::end(kVersions);
}

std::string writablePtxVersions() {
  std::vector<std::string> names;
  for (int version : kVersions)
    if (isWritablePtxVersion(version))
      names.push_back(ptxVersionText(version));
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string ptxVersionText(int version) {
  return fmt::format("{}.{}", version / 10, version % 10);
}

} // namespace kiln::isa
