// ModuleVariables: the global and constant variables of a module. They keep
// their values from launch to launch.
#pragma once

#include "sim/machine/memory/Memory.h"
#include "sim/program/SymbolLayout.h"

namespace kiln::sim {

/// Addresses of variables, by their names.
using VariablePlaces = std::map<std::string, std::uint64_t>;

/// The global and constant variables of a module, initialised.
class ModuleVariables {
public:
  /// `places`: where those lie that must lie somewhere, by their names.
  ModuleVariables(GlobalMemory &memory, const ptx::Module &module,
                  const DeviceDescription &device,
                  const VariablePlaces &places = {});
  ~ModuleVariables();
  ModuleVariables(const ModuleVariables &) = delete;
  ModuleVariables &operator=(const ModuleVariables &) = delete;

  const ModuleSymbols &symbols() const { return symbols_; }

private:
  /// Take the places that are given before anything else takes them.
  void reserve(const ptx::Module &module, const VariablePlaces &places);
  Region &regionFor(const ptx::Variable &variable);
  void allocate(const ptx::Variable &variable);
  void relocate(const ptx::Variable &variable);

  GlobalMemory &memory_;
  ModuleSymbols symbols_;
  std::vector<std::uint64_t> regions_;
  std::map<const ptx::Variable *, Region *> reserved_;
  std::vector<std::shared_ptr<std::uint8_t[]>> managed_; ///< the host's too
};

} // namespace kiln::sim
