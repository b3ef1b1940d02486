// launch_init: a first launch file for PTX, to be filled in.
#pragma once

#include <kiln/run/kernel.h>

#include <map>
#include <string>

namespace kiln::cli {

/// What the entries of the PTX say of their launches, as a launch file: one
/// launch for each entry, and under x-fill-in what no PTX says. A saved kernel
/// has a contract, from which everything follows but values. Throws UserError
/// where the PTX cannot be parsed.
std::string first_launch_file(const Kernel &kernel);

/// The launch file of a kernel with a contract. Arguments that are numbers have
/// these values by their names; for others one is put in, and x-fill-in says
/// so.
std::string launch_file_of(const Kernel &kernel,
                           const std::map<std::string, double> &values);

} // namespace kiln::cli
