// SymbolLayout: where variables, parameters and functions lie.
//
// Global and constant variables belong to the module (ModuleVariables). Shared
// ones are laid out per entry, as ptxas does it:
// extern ones that have a size, the entry's own, those of the module that it
// reaches in order of declaration, those of the functions it calls, and extern
// arrays behind them all. Local variables and the parameters of functions lie
// in the frame of their call, at the offset given here. What does not fit into
// the memory that the device has for it is refused here, so that every offset
// of shared, local and parameter memory fits 32 bits.
#pragma once

#include "kiln/run/device_description.h"
#include "sim/program/Program.h"
#include "sim/program/flow/Reachable.h"

namespace kiln::sim {

/// The symbols of a module: global and constant variables, and functions.
struct ModuleSymbols {
  std::map<std::string, Symbol> byName;              ///< of the module alone
  std::map<const ptx::Variable *, Symbol> variables; ///< of functions too

  /// Null: there is none of that name.
  const Symbol *find(const std::string &name) const {
    auto found = byName.find(name);
    return found == byName.end() ? nullptr : &found->second;
  }
  const Symbol &of(const ptx::Variable &variable) const {
    return variables.at(&variable);
  }
};

/// A memory in which variables are placed one behind the other.
struct VariableMemory {
  ptx::StateSpace space;
  const char *name;  ///< "shared memory"
  const char *owner; ///< "a CTA"
  std::uint64_t first;
  std::uint64_t bytes; ///< that there are
};
/// Take room for a variable behind `end`. Throws UserError where there is none.
Symbol placeVariable(std::uint64_t &end, const ptx::Variable &variable,
                     const VariableMemory &memory);

/// Whether a variable belongs to the module: a global or a constant one.
bool isOfModule(const ptx::Variable &variable);

/// Where the parameters of an entry lie, and behind the last their size. Throws
/// UserError where they are more than a kernel may have.
std::vector<std::uint64_t> parameterOffsets(const ptx::Function &entry,
                                            const DeviceDescription &device);

/// The address of a function: of nothing that can be read.
std::uint64_t functionAddress(const ptx::Module &module,
                              const ptx::Function &function);

class SymbolLayout {
public:
  SymbolLayout(const ModuleSymbols &symbols, const ptx::Module &module,
               const Reachable &reachable, std::uint32_t dynamicSmemBytes,
               const DeviceDescription &device);

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
  Symbol placeLocal(Frame &frame, const ptx::Variable &variable);
  void placeLocals(const ptx::Function &function);
  void placeParameters(const ptx::Function &function);

  const ModuleSymbols &symbols_;
  const DeviceDescription &device_;
  std::map<const ptx::Function *, Frame> frames_;
  std::map<std::string, Symbol> moduleShared_;
  std::uint64_t shared_ = kFirstSharedAddress;
  std::vector<std::pair<std::string, Symbol>> sharedVariables_;
};

} // namespace kiln::sim
