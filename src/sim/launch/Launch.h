// Launch: a kernel of a module, laid out and decoded, ready to be run.
#pragma once

#include "sim/machine/Machine.h"
#include "sim/machine/ModuleVariables.h"

namespace kiln::sim {

class Launch {
public:
  /// `variables`: those of the module, where they live longer than the launch.
  /// Throws UserError where the kernel needs more memory of a kind than the
  /// device has for it, or has an instruction that nobody knows.
  Launch(GlobalMemory &memory, const ptx::Module &module,
         const ptx::Function &entry, const LaunchConfig &config,
         const ModuleVariables *variables = nullptr);

  /// Run it to its end.
  LaunchResult run();

  Machine &machine() { return machine_; }

private:
  std::unique_ptr<ModuleVariables> ownVariables_;
  Machine machine_;
};

} // namespace kiln::sim
