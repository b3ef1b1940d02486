// Demangle: names of C++ as people write them.
#pragma once

#include "kiln/export.h"

#include <string>

namespace KILN_API kiln {

/// "gemm(float*, int)" of "_Z4gemmPfi"; any other name as it is.
std::string demangle(const std::string &name);

} // namespace kiln
