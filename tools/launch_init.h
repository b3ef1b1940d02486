// launch_init: a first launch file for PTX, to be filled in.
#pragma once

#include <kiln/kernel.h>

#include <string>

namespace kiln::cli {

/// What the entries of the PTX say of their launches, as a launch file: one
/// launch for each entry, and under x-fill-in what no PTX says. A saved kernel
/// has a contract, from which everything follows but values. Throws UserError
/// where the PTX cannot be parsed.
std::string first_launch_file(const Kernel &kernel);

} // namespace kiln::cli
