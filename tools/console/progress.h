// progress: how far a long command has come, where somebody looks.
#pragma once

#include <cstddef>
#include <string>

namespace kiln::cli {

/// "[##......] 3 of 12: 4096x4096x4096" on the last line of a terminal; nothing
/// where stderr is none.
void show_progress(std::size_t done, std::size_t all, const std::string &what);
/// Take it away again.
void end_progress();

} // namespace kiln::cli
