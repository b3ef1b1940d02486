// ModuleVariables: allocate, initialise, put addresses in.
#include "sim/machine/memory/ModuleVariables.h"
#include "support/Error.h"

#include <algorithm>
#include <cstring>

namespace kiln::sim {

ModuleVariables::ModuleVariables(GlobalMemory &memory,
                                 const ptx::Module &module,
                                 const DeviceDescription &device,
                                 const VariablePlaces &places)
    : memory_(memory) {
  reserve(module, places);
  VariableMemory constants{
      ptx::StateSpace::constant, "constant memory", "a module", 0,
      static_cast<std::uint64_t>(device.max_constant_bytes)};
  // Each byte has a bit beside it that says whether it was written.
  VariableMemory global{ptx::StateSpace::global, "global memory",
                        "the device, simulated here,", 0,
                        HostMemory::limit_bytes() / 9 * 8};
  if (device.memory_bytes > 0)
    global.bytes =
        std::min(global.bytes, static_cast<std::uint64_t>(device.memory_bytes));
  std::uint64_t end = 0, globalEnd = 0;
  auto take = [&](const ptx::Variable &variable) {
    if (!isOfModule(variable))
      return;
    if (variable.space == ptx::StateSpace::constant)
      placeVariable(end, variable, constants);
    else
      placeVariable(globalEnd, variable, global);
    allocate(variable);
  };
  for (const ptx::Variable &variable : module.variables) {
    take(variable);
    if (isOfModule(variable))
      symbols_.byName[variable.name] = symbols_.of(variable);
  }
  for (const ptx::Function &function : module.functions) {
    symbols_.byName[function.name] = {ptx::StateSpace::none,
                                      functionAddress(module, function), 0};
    for (const ptx::Variable &variable : function.locals)
      take(variable);
  }
  for (const auto &[alias, function] : module.aliases)
    symbols_.byName[alias] = symbols_.byName[function];
  for (const ptx::Variable &variable : module.variables)
    relocate(variable);
  for (const ptx::Function &function : module.functions)
    for (const ptx::Variable &variable : function.locals)
      relocate(variable);
}

ModuleVariables::~ModuleVariables() {
  for (std::uint64_t base : regions_)
    memory_.free(base);
}

void ModuleVariables::reserve(const ptx::Module &module,
                              const VariablePlaces &places) {
  for (const ptx::Variable &variable : module.variables)
    if (auto place = places.find(variable.name);
        place != places.end() && isOfModule(variable)) {
      Region &region =
          memory_.allocateAt(place->second, variable.bytes, variable.name);
      regions_.push_back(region.base);
      reserved_[&variable] = &region;
    }
}

Region &ModuleVariables::regionFor(const ptx::Variable &variable) {
  if (auto reserved = reserved_.find(&variable); reserved != reserved_.end())
    return *reserved->second;
  if (variable.isManaged)
    managed_.push_back(zeroBytes(variable.bytes));
  Region &region =
      variable.isManaged
          ? memory_.share(managed_.back().get(), variable.bytes, variable.name)
          : memory_.allocate(variable.bytes, variable.name);
  regions_.push_back(region.base);
  return region;
}

void ModuleVariables::allocate(const ptx::Variable &variable) {
  Region &region = regionFor(variable);
  region.isReadOnly = variable.space == ptx::StateSpace::constant;
  std::copy(variable.init.begin(), variable.init.end(), region.data.get());
  region.valid = ValidBits(region.bytes, /*isWritten=*/true);
  symbols_.variables[&variable] = {variable.space, region.base, variable.bytes};
}

void ModuleVariables::relocate(const ptx::Variable &variable) {
  for (const ptx::Variable::Relocation &relocation : variable.relocations) {
    const Symbol *target = symbols_.find(relocation.symbol);
    if (!target || !isOfModule(variable))
      userErrorAt({"PTX", static_cast<unsigned>(variable.line)},
                  "the initialiser of '{}' holds the address of '{}'; only "
                  "global and constant variables may, and only of such "
                  "variables and of functions",
                  variable.name, relocation.symbol);
    std::uint64_t address =
        (target->address + relocation.addend) >> relocation.shift;
    Region *region = memory_.find(symbols_.of(variable).address);
    std::memcpy(region->data.get() + relocation.offset, &address,
                relocation.bytes);
  }
}

} // namespace kiln::sim
