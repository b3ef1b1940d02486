// build_command: how a program is built again so that `kiln run` can run it.
#pragma once

#include <string>

namespace kiln::cli {

/// A command that does it, as its build has it: CMake's, ninja's or make's.
std::string build_advice(const std::string &program);

} // namespace kiln::cli
