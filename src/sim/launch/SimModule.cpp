// SimModule: parse, link, lay out; decode on demand.
#include "sim/launch/SimModule.h"
#include "ptx/Link.h"
#include "sim/launch/EntryRegisters.h"
#include "sim/launch/Launch.h"
#include "sim/program/EntryRules.h"
#include "sim/program/TargetNeeds.h"
#include "support/Error.h"

#include <algorithm>

namespace kiln::sim {

/// Refuse PTX that the described device does not run. PTX that names no target
/// runs everywhere.
static void checkDevice(const ptx::Module &module,
                        const DeviceDescription &device) {
  if (module.target.empty() || device.runs(module.target))
    return;
  std::string others;
  for (std::string_view name : DeviceDescription::known_names())
    if (DeviceDescription::by_name(name).runs(module.target))
      others += fmt::format("{}{}", others.empty() ? "" : ", ", name);
  userErrorAt({"PTX", static_cast<unsigned>(module.targetLine)},
              "the PTX is for {}, and {} is simulated, which runs {} and older "
              "targets without a letter; {}",
              module.target, device.name, device.target(),
              others.empty() ? "no device that Kiln knows runs it"
                             : fmt::format("it runs on {}", others));
}

static ptx::Module parseAndLink(std::span<const std::string_view> texts,
                                const DeviceDescription &device) {
  std::vector<ptx::Module> modules;
  for (std::size_t i = 0; i < texts.size(); ++i)
    modules.push_back(
        ptx::parse(std::string(texts[i]),
                   texts.size() == 1 ? "PTX" : fmt::format("PTX {}", i + 1)));
  ptx::Module module = ptx::link(std::move(modules));
  checkDevice(module, device);
  return module;
}

SimModule::SimModule(std::shared_ptr<GlobalMemory> memory,
                     std::span<const std::string_view> texts,
                     const DeviceDescription &device,
                     const VariablePlaces &places)
    : memory_(std::move(memory)), device_(device),
      text_(texts.size() == 1 ? texts[0] : std::string_view()),
      module_(parseAndLink(texts, device)),
      variables_(*memory_, module_, device, places) {}

std::vector<std::string> SimModule::entries() const {
  std::vector<std::string> names;
  for (const ptx::Function *entry : module_.entries())
    names.push_back(entry->name);
  return names;
}

const ptx::Function &SimModule::find(std::string_view name) const {
  if (const ptx::Function *found = module_.find(std::string(name));
      found && found->isEntry)
    return *found;
  auto entries = module_.entries();
  std::string known;
  for (const ptx::Function *entry : entries) {
    if (name.empty() && entries.size() == 1)
      return *entry;
    known += (known.empty() ? "" : ", ") + entry->name;
  }
  if (name.empty())
    userError("the PTX has {} entries ({}); name one", entries.size(), known);
  userError("the PTX has no entry '{}'; it has {}", name,
            known.empty() ? "none" : known);
}

std::shared_ptr<const DecodedEntry>
SimModule::decoded(const ptx::Function &entry,
                   std::uint32_t dynamicSmemBytes) const {
  std::lock_guard lock(mutex_);
  auto &known = decoded_[&entry][dynamicSmemBytes];
  if (!known)
    known = decodeEntry(module_, entry, variables_.symbols(), dynamicSmemBytes,
                        device_);
  return known;
}

void SimModule::checkTarget(const ptx::Function &entry) const {
  std::lock_guard lock(mutex_);
  if (checked_.contains(&entry))
    return;
  checkNeeds(module_, entry);
  checked_.insert(&entry);
}

const EntryInfo &SimModule::entry(std::string_view name) const {
  std::lock_guard lock(mutex_);
  if (auto known = infos_.find(name); known != infos_.end())
    return known->second;
  const ptx::Function &function = find(name);
  EntryInfo info;
  info.name = function.name;
  for (const ptx::Variable &parameter : function.parameters)
    info.parameter_bytes.push_back(static_cast<std::uint32_t>(parameter.bytes));
  for (std::uint64_t offset : parameterOffsets(function, device_))
    info.parameter_offsets.push_back(static_cast<std::uint32_t>(offset));
  std::uint64_t threads =
      std::max(threadsOf(function, "reqntid"), threadsOf(function, "maxntid"));
  info.max_threads =
      threads > 1 ? static_cast<int>(threads) : device_.max_threads_per_cta;
  Reachable reachable = reachableFrom(module_, function);
  SymbolLayout layout(variables_.symbols(), module_, reachable, 0, device_);
  info.static_smem_bytes = layout.staticSharedBytes();
  info.local_bytes = layout.localBytes(function);
  return infos_.emplace(std::string(name), std::move(info)).first->second;
}

int SimModule::registers(std::string_view name) const {
  const ptx::Function &function = find(name);
  if (int count = ptxasRegisters(function))
    return count;
  return mostRegisters(function, device_);
}

int SimModule::ptxasRegisters(const ptx::Function &entry) const {
  std::lock_guard lock(registersMutex_);
  auto known = ptxasRegisters_.find(entry.name);
  if (known == ptxasRegisters_.end())
    known = ptxasRegisters_
                .emplace(entry.name, registersByPtxas(text_, module_, entry))
                .first;
  return known->second;
}

Buffer SimModule::variable(std::string_view name) const {
  const Symbol *symbol = variables_.symbols().find(std::string(name));
  if (!symbol || symbol->space == ptx::StateSpace::none)
    userError("the module has no global or constant variable '{}'", name);
  return Buffer(symbol->address, symbol->bytes);
}

} // namespace kiln::sim
