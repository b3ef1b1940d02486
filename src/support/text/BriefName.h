// BriefName: names of templates that fit on a line.
#pragma once

#include "kiln/base/export.h"

#include <string>

namespace KILN_API kiln {

/// "device_kernel<GemmUniversal<...>>(...)": of lists in angle brackets and in
/// parentheses what fits in 60 characters, and dots for the rest.
std::string briefName(const std::string &name);

} // namespace kiln
