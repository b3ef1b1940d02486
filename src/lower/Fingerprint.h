// Fingerprint: a module as bytes that change whenever its meaning or its lines
// do.
//
// MLIR's bytecode is that too, and takes three times as long to write: the most
// of what a kernel costs that is found in the cache. Nothing reads these bytes
// back; they are hashed.
#pragma once

#include "lower/Mlir.h"

#include <string>

namespace kiln {

std::string fingerprint(mlir::Operation *root);

} // namespace kiln
