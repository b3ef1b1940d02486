// Alike: findings of the same source line are one, and some of the rest are
// left out.
#pragma once

#include "kiln/check/finding.h"
#include "sim/machine/FindingQuota.h"

#include <vector>

namespace kiln::sim {

/// Join findings that are alike: the first one stays and counts the others.
/// `hasEnd`: the last one ended the launch, and stays what it is.
void joinAlike(std::vector<Finding> &findings, bool hasEnd);

/// Keep `most` of them, errors rather than others, the first ones rather than
/// later ones, and what ended the launch; 0: all. The others go to `leftOut`.
void keepMost(std::vector<Finding> &findings, std::uint64_t most, bool hasEnd,
              FindingQuota &leftOut);

} // namespace kiln::sim
