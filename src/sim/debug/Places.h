// Places: between the instructions of a module and what people call them: a
// line of the source, a line of the PTX, a function.
#pragma once

#include "ptx/Ast.h"
#include "sim/machine/Findings.h"

#include <string>
#include <string_view>
#include <vector>

namespace kiln::sim {

/// Where stepping by lines is: the same key, the same line.
struct LineKey {
  int file = 0; ///< 0: a line of the PTX; -1: the compiler has no line for it
  int line = 0;
  int depth = 0; ///< functions that were inlined around it
  bool operator==(const LineKey &) const = default;
};

class Places {
public:
  /// `path`: what the PTX is called; of several texts "PTX 2".
  Places(const ptx::Module &module, std::string path);

  /// From the innermost function out to that of the PTX; one at least.
  std::vector<Finding::Frame>
  framesOf(const ptx::Instruction &instruction) const;
  LineKey keyOf(const ptx::Instruction &instruction) const;
  /// "gemm.cpp:12" of the source, "ptx:40" or "FILE.ptx:40", or the name of a
  /// function: its first instruction. Of a line they are those that begin a run
  /// of its instructions. Throws UserError that says what there is.
  std::vector<const ptx::Instruction *> find(std::string_view place) const;
  /// The function that an instruction is in.
  const ptx::Function &functionOf(const ptx::Instruction &instruction) const;
  const ptx::Module &module() const { return module_; }
  const std::string &path() const { return path_; }
  /// Files of the source that have lines.
  std::vector<std::string> files() const;
  std::string shownFile(const std::string &file) const {
    return file == "PTX" ? path_ : file;
  }

private:
  std::vector<const ptx::Instruction *>
  findLine(std::string_view file, int line, std::string_view place) const;
  std::vector<const ptx::Instruction *> findPtxLine(int line) const;
  std::vector<const ptx::Instruction *>
  findFunction(std::string_view name) const;

  const ptx::Module &module_;
  std::string path_;
  LaunchConfig config_; ///< of nobody's launch
  Findings findings_;
};

} // namespace kiln::sim
