// ModuleVariables: the global and constant variables of a module. They keep
// their values from launch to launch.
#pragma once

#include "sim/machine/Memory.h"
#include "sim/program/SymbolLayout.h"

namespace kiln::sim {

/// The global and constant variables of a module, initialised.
class ModuleVariables {
public:
  ModuleVariables(GlobalMemory &memory, const ptx::Module &module,
                  const DeviceDescription &device);
  ~ModuleVariables();
  ModuleVariables(const ModuleVariables &) = delete;
  ModuleVariables &operator=(const ModuleVariables &) = delete;

  const ModuleSymbols &symbols() const { return symbols_; }

private:
  void allocate(const ptx::Variable &variable);
  void relocate(const ptx::Variable &variable);

  GlobalMemory &memory_;
  ModuleSymbols symbols_;
  std::vector<std::uint64_t> regions_;
  std::vector<std::unique_ptr<std::uint8_t[]>> managed_; ///< the host's too
};

} // namespace kiln::sim
