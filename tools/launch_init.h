// launch_init: a first launch file for PTX, to be filled in.
#pragma once

#include <cstdint>
#include <string>

namespace kiln::cli {

/// What the entries of the PTX say of their launches, as a launch file: one
/// launch for each entry, and under x-fill-in what no PTX says. The dynamic
/// shared memory is that of a saved kernel; 0: nobody has said it. Throws
/// UserError where the PTX cannot be parsed.
std::string first_launch_file(const std::string &ptx,
                              std::uint32_t dynamic_smem);

} // namespace kiln::cli
