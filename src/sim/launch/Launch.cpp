// Launch: place the symbols, decode, run.
#include "sim/launch/Launch.h"
#include "sim/launch/LaunchScheduler.h"
#include "sim/units/Units.h"

namespace kiln::sim {

static Machine makeMachine(GlobalMemory &memory, const ptx::Module &module,
                           const ptx::Function &entry,
                           const LaunchConfig &config,
                           const ModuleSymbols &symbols) {
  Reachable reachable = reachableFrom(module, entry);
  SymbolLayout layout(symbols, module, reachable, config.dynamicSmemBytes,
                      config.device);
  Names names{[&](const ptx::Function &function, const std::string &name) {
                return layout.find(function, name);
              },
              [&](const ptx::Function &function) {
                return layout.localBytes(function);
              }};
  Decoder decoder(instructionSet(), module, reachable.functions, names);
  return Machine(memory, config, decoder.decode(), layout.staticSharedBytes(),
                 layout.sharedVariables());
}

Launch::Launch(GlobalMemory &memory, const ptx::Module &module,
               const ptx::Function &entry, const LaunchConfig &config,
               const ModuleVariables *variables)
    : ownVariables_(variables ? nullptr
                              : std::make_unique<ModuleVariables>(
                                    memory, module, config.device)),
      machine_(makeMachine(
          memory, module, entry, config,
          (variables ? variables : ownVariables_.get())->symbols())) {}

LaunchResult Launch::run() { return LaunchScheduler(machine_).run(); }

} // namespace kiln::sim
