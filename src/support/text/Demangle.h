// Demangle: names of C++ as people write them.
#pragma once

#include "kiln/base/export.h"

#include <string>

namespace KILN_API kiln {

/// "gemm(float*, int)" of "_Z4gemmPfi"; any other name as it is.
std::string demangle(const std::string &name);
/// The same of a variable; of one inside a function its own name alone.
std::string variableName(const std::string &name);

} // namespace kiln
