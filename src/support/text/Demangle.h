// Demangle: names of C++ as people write them, within limits.
#pragma once

#include "kiln/base/export.h"

#include <cstddef>
#include <string>

namespace KILN_API kiln {

/// Of names that are demangled, and of what they may become: several times
/// what the largest kernels of CUTLASS have.
inline constexpr std::size_t kMangledLimitBytes = 16384,
                             kDemangledLimitBytes = 65536;

/// "gemm(float*, int)" of "_Z4gemmPfi"; any other name as it is, and so is one
/// beyond those limits.
std::string demangle(const std::string &name);
/// The same of a variable; of one inside a function its own name alone.
std::string variableName(const std::string &name);

} // namespace kiln
