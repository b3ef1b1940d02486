// scope.h: among which threads an operation is ordered and undivided.
#pragma once

#include <kiln/base/export.h>

#include <cstdint>

namespace KILN_API kiln {

/// PTX's .cta, .cluster, .gpu and .sys.
enum class Scope : std::uint8_t { cta, cluster, gpu, sys };

} // namespace kiln
