// Launch: a kernel of a module, laid out and decoded, ready to be run.
#pragma once

#include "sim/machine/Machine.h"
#include "sim/machine/memory/ModuleVariables.h"

namespace kiln::sim {

class LaunchScheduler;

/// Place the symbols of an entry and decode what it reaches. Throws UserError
/// where it needs more memory of a kind than the device has for it, or has an
/// instruction that nobody knows.
std::shared_ptr<const DecodedEntry>
decodeEntry(const ptx::Module &module, const ptx::Function &entry,
            const ModuleSymbols &symbols, std::uint32_t dynamicSmemBytes,
            const DeviceDescription &device,
            Execution execution = Execution::fast);

class Launch {
public:
  /// Of an entry that was decoded with that much shared memory.
  Launch(GlobalMemory &memory, std::shared_ptr<const DecodedEntry> entry,
         const LaunchConfig &config);
  /// Decode it for this launch alone.
  Launch(GlobalMemory &memory, const ptx::Module &module,
         const ptx::Function &entry, const LaunchConfig &config);
  ~Launch();

  /// Run it to its end, or until nothing in it moves where it is not alone.
  enum class Progress : std::uint8_t { ended, moved, stuck };
  Progress advance();
  /// For launches that may overlap (LaunchChain), between two advances.
  LaunchScheduler &scheduler();
  /// After its end.
  LaunchResult result();

  /// Run it to its end.
  LaunchResult run();

  Machine &machine() { return machine_; }

private:
  std::unique_ptr<ModuleVariables> ownVariables_;
  Machine machine_;
  std::unique_ptr<LaunchScheduler> scheduler_;
};

} // namespace kiln::sim
