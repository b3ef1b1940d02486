// FindTool: where the toolkit's programs are.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kiln {

/// A program of the CUDA toolkit by its name: CUDA_HOME/bin, then the folders
/// of PATH; nothing where neither has it.
std::optional<std::string> findToolkitProgram(std::string_view name);

/// Can this path be run? A folder cannot.
bool isExecutableFile(const std::string &path);

} // namespace kiln
