// FindTool: where the toolkit's programs are.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kiln {

/// A program of the CUDA toolkit by its name: CUDA_HOME/bin, then the folders
/// of PATH; nothing where neither has it.
std::optional<std::string> findToolkitProgram(std::string_view name);

/// The same, but first in the folder of `ptxas`, where that is not empty: a
/// disassembler that is older than the assembler does not know its code.
std::optional<std::string> findBesidePtxas(std::string_view name,
                                           const std::string &ptxas);

/// Can this path be run? A folder cannot.
bool isExecutableFile(const std::string &path);

} // namespace kiln
