// output_file: what a command writes where it was told to.
#pragma once

#include <string>

namespace kiln::cli {

/// To the file, or to stdout where none is named. Throws UserError.
void write_output(const std::string &path, const std::string &text);

} // namespace kiln::cli
