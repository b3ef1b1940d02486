// explanation.h: what the ids of findings mean, as `kiln explain` says it.
#pragma once

#include <kiln/base/export.h>
#include <kiln/check/finding.h>

#include <span>
#include <string_view>

namespace KILN_API kiln {

/// What a finding's id stands for.
struct Explanation {
  std::string_view id;
  std::string_view cause;  ///< what happened, and what hardware makes of it
  std::string_view broken; ///< the smallest kernel text that does it
  std::string_view repair;
  Finding::Grade grade = Finding::Grade::error;
  bool ends_launch = false; ///< unless it is allowed, or taken for a warning
};
/// Every id the simulator knows, in alphabetical order.
std::span<const Explanation> explanations();
/// One of them. Throws UserError that lists the ids.
const Explanation &explain(std::string_view id);

} // namespace kiln
