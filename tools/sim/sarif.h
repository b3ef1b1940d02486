// sarif: findings for editors and code review, in the Static Analysis Results
// Interchange Format, version 2.1.0.
#pragma once

#include <kiln/run/device.h>

namespace kiln::cli {

std::string to_sarif(const std::vector<Finding> &findings);

} // namespace kiln::cli
