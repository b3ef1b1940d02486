// SymbolLayout: where variables, parameters and functions lie.
//
// Global and constant variables belong to the module: they keep their values
// from launch to launch. Shared ones are laid out per entry, as ptxas does it:
// extern ones that have a size, the entry's own, those of the module that it
// reaches in order of declaration, those of the functions it calls, and extern
// arrays behind them all. Local variables and the parameters of functions lie
// in the frame of their call, at the offset given here.
#pragma once

#include "sim/Memory.h"
#include "sim/Program.h"
#include "sim/Reachable.h"

namespace kiln::sim {

/// The global and constant variables of a module, initialised.
class ModuleVariables {
public:
  ModuleVariables(GlobalMemory &memory, const ptx::Module &module);
  ~ModuleVariables();
  ModuleVariables(const ModuleVariables &) = delete;
  ModuleVariables &operator=(const ModuleVariables &) = delete;

  /// A variable or a function; null: neither.
  const Symbol *find(const std::string &name) const;

private:
  void allocate(const ptx::Variable &variable);
  void relocate(const ptx::Variable &variable);

  GlobalMemory &memory_;
  std::map<std::string, Symbol> symbols_;
  std::vector<std::uint64_t> regions_;
};

/// The address of a function: of nothing that can be read.
std::uint64_t functionAddress(const ptx::Module &module,
                              const ptx::Function &function);

class SymbolLayout {
public:
  SymbolLayout(const ModuleVariables &variables, const ptx::Module &module,
               const Reachable &reachable, std::uint32_t dynamicSmemBytes);

  const Symbol *find(const ptx::Function &function,
                     const std::string &name) const;
  /// Bytes of a function's frame: its .local variables, its parameters unless
  /// it is an entry, and the parameters of its calls.
  std::uint32_t localBytes(const ptx::Function &function) const;
  std::uint32_t staticSharedBytes() const {
    return static_cast<std::uint32_t>(shared_ - kFirstSharedAddress);
  }

  /// Shared variables by name, for messages.
  const std::vector<std::pair<std::string, Symbol>> &sharedVariables() const {
    return sharedVariables_;
  }

private:
  /// Names of one function, and the bytes of its frame.
  struct Frame {
    std::map<std::string, Symbol> symbols;
    std::uint64_t bytes = 0;
  };

  Symbol placeShared(const ptx::Variable &variable);
  void placeLocals(const ptx::Function &function);
  void placeParameters(const ptx::Function &function);

  const ModuleVariables &variables_;
  std::map<const ptx::Function *, Frame> frames_;
  std::map<std::string, Symbol> moduleShared_;
  std::uint64_t shared_ = kFirstSharedAddress;
  std::vector<std::pair<std::string, Symbol>> sharedVariables_;
};

} // namespace kiln::sim
