// SymbolLayout: where variables, parameters and functions lie.
//
// Global and constant variables belong to the module: they keep their values
// from launch to launch. Shared ones are laid out per entry, as ptxas does it:
// extern ones that have a size, the entry's own, those of the module that it
// reaches in order of declaration, those of the functions it calls, and extern
// arrays behind them all. Local variables and the parameters of functions lie
// in the frame of their call, at the offset given here. What does not fit into
// the memory that the device has for it is refused here, so that every offset
// of shared, local and parameter memory fits 32 bits.
#pragma once

#include "kiln/device_description.h"
#include "sim/Memory.h"
#include "sim/Program.h"
#include "sim/Reachable.h"

namespace kiln::sim {

/// The global and constant variables of a module, initialised.
class ModuleVariables {
public:
  ModuleVariables(GlobalMemory &memory, const ptx::Module &module,
                  const DeviceDescription &device);
  ~ModuleVariables();
  ModuleVariables(const ModuleVariables &) = delete;
  ModuleVariables &operator=(const ModuleVariables &) = delete;

  /// A variable of the module or a function; null: neither.
  const Symbol *find(const std::string &name) const;
  /// A variable of the module or of a function.
  const Symbol &of(const ptx::Variable &variable) const {
    return variables_.at(&variable);
  }

private:
  void allocate(const ptx::Variable &variable);
  void relocate(const ptx::Variable &variable);

  GlobalMemory &memory_;
  std::map<std::string, Symbol> symbols_;
  std::map<const ptx::Variable *, Symbol> variables_;
  std::vector<std::uint64_t> regions_;
};

/// Where the parameters of an entry lie, and behind the last their size. Throws
/// UserError where they are more than a kernel may have.
std::vector<std::uint64_t> parameterOffsets(const ptx::Function &entry,
                                            const DeviceDescription &device);

/// The address of a function: of nothing that can be read.
std::uint64_t functionAddress(const ptx::Module &module,
                              const ptx::Function &function);

class SymbolLayout {
public:
  SymbolLayout(const ModuleVariables &variables, const ptx::Module &module,
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

  const ModuleVariables &variables_;
  const DeviceDescription &device_;
  std::map<const ptx::Function *, Frame> frames_;
  std::map<std::string, Symbol> moduleShared_;
  std::uint64_t shared_ = kFirstSharedAddress;
  std::vector<std::pair<std::string, Symbol>> sharedVariables_;
};

} // namespace kiln::sim
