// SimModule: PTX that the simulator has taken in: parsed and linked once, its
// variables laid out, its entries decoded when they are first launched.
#pragma once

#include "kiln/run/device.h"
#include "sim/machine/Machine.h"
#include "sim/machine/memory/ModuleVariables.h"

#include <mutex>
#include <set>

namespace kiln::sim {

class SimModule final : public LoadedModule {
public:
  /// Throws UserError where the device does not run it.
  SimModule(std::shared_ptr<GlobalMemory> memory,
            std::span<const std::string_view> texts,
            const DeviceDescription &device, const VariablePlaces &places = {});

  std::vector<std::string> entries() const override;
  const EntryInfo &entry(std::string_view name) const override;
  int registers(std::string_view name) const override;
  Buffer variable(std::string_view name) const override;

  const ptx::Module &module() const { return module_; }
  /// For ptxas; empty where several were linked.
  std::string_view text() const { return text_; }
  /// Per thread of an entry, as ptxas gives them; 0: it does not.
  int ptxasRegisters(const ptx::Function &entry) const;
  /// The entry that is meant; an empty name: the only one. Throws UserError.
  const ptx::Function &find(std::string_view name) const;
  std::shared_ptr<const DecodedEntry>
  decoded(const ptx::Function &entry, std::uint32_t dynamicSmemBytes) const;
  /// Throws UserError where the module's .target or .version lacks what the
  /// entry uses.
  void checkTarget(const ptx::Function &entry) const;

private:
  /// What an entry's number of bytes of shared memory made of it.
  using Decoded = std::map<std::uint32_t, std::shared_ptr<const DecodedEntry>>;

  std::shared_ptr<GlobalMemory> memory_;
  const DeviceDescription &device_;
  std::string text_;
  ptx::Module module_;
  ModuleVariables variables_;
  mutable std::mutex mutex_;
  mutable std::map<const ptx::Function *, Decoded> decoded_;
  mutable std::set<const ptx::Function *> checked_; ///< and found to be right
  mutable std::map<std::string, EntryInfo, std::less<>> infos_;
  mutable std::mutex registersMutex_;
  mutable std::map<std::string, int> ptxasRegisters_; ///< by entry
};

} // namespace kiln::sim
