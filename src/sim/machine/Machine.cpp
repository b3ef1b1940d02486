// Machine: what a launch is made of, and who wrote what last.
#include "sim/machine/Machine.h"
#include "support/limits/Budget.h"

#include <cstring>

namespace kiln::sim {

Machine::Machine(GlobalMemory &memory, LaunchConfig config,
                 std::shared_ptr<const DecodedEntry> entry)
    : memory_(memory), config_(std::move(config)), entry_(std::move(entry)),
      findings_(*entry_->code.module, config_, entry_->sharedVariables) {
  // What is in flight stays there until it is chosen.
  if (config_.strategy)
    config_.interleaving = Interleaving::lazy;
  if (usesHeap())
    memory_.makeHeap();
  if (!config_.isCooperative)
    return;
  // What cooperative_groups keeps there: its size, and a counter of arrivals.
  constexpr std::size_t kBytes = 64;
  Region &region = memory_.allocate(kBytes, "the workspace of grid.sync");
  std::memset(region.data.get(), 0, kBytes);
  region.valid.set(0, kBytes);
  gridWorkspace_ = region.base;
}

bool Machine::isBeyondMemory() const {
  // Within which a machine fills no more than some megabytes.
  constexpr double kPauseS = 0.005;
  if (bytesBeyond_)
    return true;
  double nowS = elapsedS(), nextS = nextLookS_.load(std::memory_order_relaxed);
  if (nowS < nextS || !nextLookS_.compare_exchange_strong(nextS, nowS + kPauseS))
    return false;
  std::uint64_t bytes = residentBytes();
  if (bytes > config_.memory_limit_bytes)
    bytesBeyond_ = bytes;
  return bytesBeyond_ != 0;
}

bool Machine::usesHeap() const {
  const ptx::Function *allocates = code().module->find("malloc");
  return allocates && !allocates->hasBody;
}

Machine::~Machine() {
  if (gridWorkspace_)
    memory_.free(gridWorkspace_);
}

} // namespace kiln::sim
