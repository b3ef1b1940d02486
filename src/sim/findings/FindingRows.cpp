// FindingRows: the table of findings, and how it is looked up.
#include "sim/findings/FindingId.h"
#include "support/Error.h"

#include <algorithm>
#include <vector>

namespace kiln {

static constexpr bool goesOn = false, ends = true;

// As FindingId counts them.
static constexpr Explanation kRows[] = {
#define FINDING(NAME, ID, GRADE, END, CAUSE, BROKEN, REPAIR)                   \
  {ID, CAUSE, BROKEN, REPAIR, Finding::Grade::GRADE, END},
#include "sim/findings/Errors.def"
#include "sim/findings/Warnings.def"

#include "sim/findings/Tensor.def"
#undef FINDING
};

const Explanation &sim::rowOf(FindingId id) {
  return kRows[static_cast<std::size_t>(id)];
}

std::span<const Explanation> explanations() {
  static const std::vector<Explanation> sorted = [] {
    std::vector<Explanation> rows(std::begin(kRows), std::end(kRows));
    std::sort(rows.begin(), rows.end(),
              [](const auto &a, const auto &b) { return a.id < b.id; });
    return rows;
  }();
  return sorted;
}

const Explanation &explain(std::string_view id) {
  std::string known;
  for (const Explanation &explanation : explanations()) {
    if (explanation.id == id)
      return explanation;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", explanation.id);
  }
  userError("'{}' is not a finding of the simulator; there are {}", id, known);
}

} // namespace kiln
