// elf_file: what a program says about the libraries it wants.
#pragma once

#include <string>
#include <vector>

namespace kiln::cli {

struct ElfFile {
  bool is_elf = false;             ///< of 64 bits; else nothing is known
  std::vector<std::string> needed; ///< libraries
  bool has_fatbin = false;         ///< nvcc's kernels
};

/// Of a file of any kind; a damaged one says as much as can be read.
ElfFile read_elf(const std::string &path);

} // namespace kiln::cli
