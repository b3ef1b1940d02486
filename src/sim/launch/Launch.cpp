// Launch: place the symbols, decode, run.
#include "sim/launch/Launch.h"
#include "sim/launch/LaunchScheduler.h"
#include "sim/units/Units.h"

namespace kiln::sim {

std::shared_ptr<const DecodedEntry>
decodeEntry(const ptx::Module &module, const ptx::Function &entry,
            const ModuleSymbols &symbols, std::uint32_t dynamicSmemBytes,
            const DeviceDescription &device, Execution execution) {
  Reachable reachable = reachableFrom(module, entry);
  SymbolLayout layout(symbols, module, reachable, dynamicSmemBytes, device);
  Names names{[&](const ptx::Function &function, const std::string &name) {
                return layout.find(function, name);
              },
              [&](const ptx::Function &function) {
                return layout.localBytes(function);
              }};
  Decoder decoder(instructionSet(), module, reachable.functions, names);
  return std::make_shared<DecodedEntry>(DecodedEntry{decoder.decode(execution),
                                                     layout.staticSharedBytes(),
                                                     layout.sharedVariables()});
}

Launch::Launch(GlobalMemory &memory, std::shared_ptr<const DecodedEntry> entry,
               const LaunchConfig &config)
    : machine_(memory, config, std::move(entry)) {}

Launch::Launch(GlobalMemory &memory, const ptx::Module &module,
               const ptx::Function &entry, const LaunchConfig &config)
    : ownVariables_(
          std::make_unique<ModuleVariables>(memory, module, config.device)),
      machine_(memory, config,
               decodeEntry(module, entry, ownVariables_->symbols(),
                           config.dynamicSmemBytes, config.device,
                           config.execution)) {}

Launch::~Launch() = default;

LaunchScheduler &Launch::scheduler() {
  if (!scheduler_)
    scheduler_ = std::make_unique<LaunchScheduler>(machine_);
  return *scheduler_;
}

Launch::Progress Launch::advance() {
  std::uint64_t before = scheduler().moves();
  if (scheduler_->advance())
    return Progress::ended;
  return scheduler_->moves() == before ? Progress::stuck : Progress::moved;
}

LaunchResult Launch::result() { return scheduler_->result(); }

LaunchResult Launch::run() {
  machine_.leaveAlone();
  advance();
  return result();
}

} // namespace kiln::sim
