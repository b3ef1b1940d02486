// Link: several PTX modules into one, as nvlink does it for -rdc=true.
#pragma once

#include "ptx/Ast.h"

namespace kiln::ptx {

/// One module with all functions and variables: those that one module wants
/// (.extern) are those that another has (.visible, or the first .weak). Names
/// that only one module can see may be in several. Throws UserError where a
/// visible name is defined twice, or a variable nowhere. Functions that nobody
/// has stay declared: vprintf and its like.
Module link(std::vector<Module> modules);

} // namespace kiln::ptx
