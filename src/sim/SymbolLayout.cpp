// SymbolLayout: place variables one behind the other, each at its alignment.
#include "sim/SymbolLayout.h"
#include "support/Error.h"

#include <algorithm>
#include <cstring>

namespace kiln::sim {

using ptx::StateSpace;

static std::uint64_t roundUp(std::uint64_t value, std::uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// Take room for a variable behind `end`.
static Symbol place(std::uint64_t &end, const ptx::Variable &variable,
                    StateSpace space) {
  std::uint64_t address = roundUp(end, std::max(variable.align, 1));
  end = address + variable.bytes;
  return {space, address, variable.bytes};
}

static bool isOfModule(const ptx::Variable &variable) {
  return variable.space == StateSpace::global ||
         variable.space == StateSpace::constant;
}

/// `.extern .shared .b8 tile[]`: all of dynamic shared memory.
static bool isDynamic(const ptx::Variable &variable) {
  return variable.space == StateSpace::shared && variable.bytes == 0;
}

std::uint64_t functionAddress(const ptx::Module &module,
                              const ptx::Function &function) {
  return kCodeWindow + 16 * (&function - module.functions.data());
}

ModuleVariables::ModuleVariables(GlobalMemory &memory,
                                 const ptx::Module &module)
    : memory_(memory) {
  for (const ptx::Variable &variable : module.variables)
    if (isOfModule(variable))
      allocate(variable);
  for (const ptx::Function &function : module.functions) {
    symbols_[function.name] = {StateSpace::none,
                               functionAddress(module, function), 0};
    for (const ptx::Variable &variable : function.locals)
      if (isOfModule(variable))
        allocate(variable);
  }
  for (const auto &[alias, function] : module.aliases)
    symbols_[alias] = symbols_[function];
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

const Symbol *ModuleVariables::find(const std::string &name) const {
  auto found = symbols_.find(name);
  return found == symbols_.end() ? nullptr : &found->second;
}

void ModuleVariables::allocate(const ptx::Variable &variable) {
  Region &region = memory_.allocate(variable.bytes, variable.name);
  region.isReadOnly = variable.space == StateSpace::constant;
  std::copy(variable.init.begin(), variable.init.end(), region.data.get());
  region.valid.set(0, region.bytes);
  regions_.push_back(region.base);
  symbols_[variable.name] = {variable.space, region.base, variable.bytes};
}

void ModuleVariables::relocate(const ptx::Variable &variable) {
  for (const ptx::Variable::Relocation &relocation : variable.relocations) {
    const Symbol *target = find(relocation.symbol);
    if (!target || !isOfModule(variable))
      userErrorAt({"PTX", static_cast<unsigned>(variable.line)},
                  "the initialiser of '{}' holds the address of '{}'; only "
                  "global and constant variables may, and only of such "
                  "variables and of functions",
                  variable.name, relocation.symbol);
    std::uint64_t address =
        (target->address + relocation.addend) >> relocation.shift;
    Region *region = memory_.find(symbols_[variable.name].address);
    std::memcpy(region->data.get() + relocation.offset, &address,
                relocation.bytes);
  }
}

SymbolLayout::SymbolLayout(const ModuleVariables &variables,
                           const ptx::Module &module,
                           const Reachable &reachable,
                           std::uint32_t dynamicSmemBytes)
    : variables_(variables) {
  auto isHere = [&](const ptx::Variable &variable) {
    return variable.space == StateSpace::shared &&
           reachable.variables.contains(variable.name) && !isDynamic(variable);
  };
  // ptxas drops the word extern where there is a size.
  for (const ptx::Variable &variable : module.variables)
    if (isHere(variable) && variable.isExtern)
      moduleShared_[variable.name] = placeShared(variable);
  const ptx::Function &entry = *reachable.functions.front();
  placeLocals(entry);
  for (const ptx::Variable &variable : module.variables)
    if (isHere(variable) && !variable.isExtern)
      moduleShared_[variable.name] = placeShared(variable);
  for (const ptx::Function *function : reachable.functions) {
    if (function != &entry)
      placeLocals(*function);
    placeParameters(*function);
  }
  std::uint64_t end = shared_;
  for (const ptx::Variable &variable : module.variables)
    if (isDynamic(variable) && reachable.variables.contains(variable.name)) {
      std::uint64_t base = roundUp(shared_, std::max(variable.align, 1));
      moduleShared_[variable.name] = {StateSpace::shared, base,
                                      dynamicSmemBytes};
      sharedVariables_.emplace_back(variable.name,
                                    moduleShared_[variable.name]);
      end = std::max(end, base);
    }
  shared_ = end;
}

Symbol SymbolLayout::placeShared(const ptx::Variable &variable) {
  Symbol symbol = place(shared_, variable, StateSpace::shared);
  sharedVariables_.emplace_back(variable.name, symbol);
  return symbol;
}

void SymbolLayout::placeLocals(const ptx::Function &function) {
  Frame &frame = frames_[&function];
  for (const ptx::Variable &variable : function.locals) {
    if (isOfModule(variable))
      continue;
    frame.symbols[variable.name] =
        variable.space == StateSpace::shared
            ? placeShared(variable)
            : place(frame.bytes, variable, StateSpace::local);
  }
}

void SymbolLayout::placeParameters(const ptx::Function &function) {
  Frame &frame = frames_[&function];
  std::uint64_t entryBytes = 0;
  for (const auto *list : {&function.parameters, &function.results})
    for (const ptx::Variable &variable : *list) {
      if (variable.space == StateSpace::none)
        continue; // a register
      frame.symbols[variable.name] =
          function.isEntry ? place(entryBytes, variable, StateSpace::param)
                           : place(frame.bytes, variable, StateSpace::local);
    }
}

const Symbol *SymbolLayout::find(const ptx::Function &function,
                                 const std::string &name) const {
  const auto &own = frames_.at(&function).symbols;
  if (auto found = own.find(name); found != own.end())
    return &found->second;
  if (auto found = moduleShared_.find(name); found != moduleShared_.end())
    return &found->second;
  return variables_.find(name);
}

std::uint32_t SymbolLayout::localBytes(const ptx::Function &function) const {
  return static_cast<std::uint32_t>(roundUp(frames_.at(&function).bytes, 16));
}

} // namespace kiln::sim
