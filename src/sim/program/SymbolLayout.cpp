// SymbolLayout: place variables one behind the other, each at its alignment.
#include "sim/program/SymbolLayout.h"
#include "support/Error.h"

#include <algorithm>

namespace kiln::sim {

using ptx::StateSpace;

static std::uint64_t roundUp(std::uint64_t value, std::uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

Symbol placeVariable(std::uint64_t &end, const ptx::Variable &variable,
                     const VariableMemory &memory) {
  std::uint64_t address = roundUp(end, std::max(variable.align, 1));
  if (!isInside(address - memory.first, variable.bytes, memory.bytes))
    userErrorAt({"PTX", static_cast<unsigned>(variable.line)},
                "'{}' of {} bytes does not fit into {} behind the {} bytes "
                "that are taken; {} has {}",
                variable.name, variable.bytes, memory.name,
                address - memory.first, memory.owner, memory.bytes);
  end = address + variable.bytes;
  return {memory.space, address, variable.bytes};
}

bool isOfModule(const ptx::Variable &variable) {
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

SymbolLayout::SymbolLayout(const ModuleSymbols &symbols,
                           const ptx::Module &module,
                           const Reachable &reachable,
                           std::uint32_t dynamicSmemBytes,
                           const DeviceDescription &device)
    : symbols_(symbols), device_(device) {
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
  auto most = static_cast<std::uint64_t>(device.max_smem_per_cta_bytes);
  if (!isInside(shared_ - kFirstSharedAddress, dynamicSmemBytes, most))
    userErrorAt({"PTX", static_cast<unsigned>(entry.line)},
                "{} has {} bytes of static shared memory and is launched with "
                "{} of dynamic; a CTA has {} for both",
                entry.name, shared_ - kFirstSharedAddress, dynamicSmemBytes,
                most);
}

Symbol SymbolLayout::placeShared(const ptx::Variable &variable) {
  Symbol symbol = placeVariable(
      shared_, variable,
      {StateSpace::shared, "shared memory", "a CTA", kFirstSharedAddress,
       static_cast<std::uint64_t>(device_.max_smem_per_cta_bytes)});
  sharedVariables_.emplace_back(variable.name, symbol);
  return symbol;
}

Symbol SymbolLayout::placeLocal(Frame &frame, const ptx::Variable &variable) {
  return placeVariable(
      frame.bytes, variable,
      {StateSpace::local, "local memory", "a thread", 0,
       static_cast<std::uint64_t>(device_.max_local_bytes_per_thread)});
}

void SymbolLayout::placeLocals(const ptx::Function &function) {
  Frame &frame = frames_[&function];
  for (const ptx::Variable &variable : function.locals)
    frame.symbols[variable.name] = isOfModule(variable) ? symbols_.of(variable)
                                   : variable.space == StateSpace::shared
                                       ? placeShared(variable)
                                       : placeLocal(frame, variable);
}

std::vector<std::uint64_t> parameterOffsets(const ptx::Function &entry,
                                            const DeviceDescription &device) {
  std::vector<std::uint64_t> offsets;
  std::uint64_t end = 0;
  VariableMemory memory{StateSpace::param, "the parameters", "a kernel", 0,
                        static_cast<std::uint64_t>(device.max_parameter_bytes)};
  for (const ptx::Variable &variable : entry.parameters)
    offsets.push_back(placeVariable(end, variable, memory).address);
  offsets.push_back(end);
  return offsets;
}

void SymbolLayout::placeParameters(const ptx::Function &function) {
  Frame &frame = frames_[&function];
  if (function.isEntry) {
    std::vector<std::uint64_t> offsets = parameterOffsets(function, device_);
    for (std::size_t i = 0; i < function.parameters.size(); ++i) {
      const ptx::Variable &variable = function.parameters[i];
      frame.symbols[variable.name] = {StateSpace::param, offsets[i],
                                      variable.bytes};
    }
    return;
  }
  for (const auto *list : {&function.parameters, &function.results})
    for (const ptx::Variable &variable : *list)
      if (variable.space != StateSpace::none) // else it is a register
        frame.symbols[variable.name] = placeLocal(frame, variable);
}

const Symbol *SymbolLayout::find(const ptx::Function &function,
                                 const std::string &name) const {
  const auto &own = frames_.at(&function).symbols;
  if (auto found = own.find(name); found != own.end())
    return &found->second;
  if (auto found = moduleShared_.find(name); found != moduleShared_.end())
    return &found->second;
  return symbols_.find(name);
}

std::uint32_t SymbolLayout::localBytes(const ptx::Function &function) const {
  return static_cast<std::uint32_t>(roundUp(frames_.at(&function).bytes, 16));
}

} // namespace kiln::sim
