// Alike: one finding for each source line and kind.
#pragma once

#include "kiln/run/device.h"

namespace kiln::sim {

/// Findings of one id at one place, against accesses at one other place, become
/// the first of them, which counts the rest. The last one stays where it is if
/// it ended the launch.
void joinAlike(std::vector<Finding> &findings, bool hasEnd);

} // namespace kiln::sim
