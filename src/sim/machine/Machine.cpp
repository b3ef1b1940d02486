// Machine: what a launch is made of, and who wrote what last.
#include "sim/machine/Machine.h"

#include <cstring>

namespace kiln::sim {

Machine::Machine(GlobalMemory &memory, LaunchConfig config,
                 std::shared_ptr<const DecodedEntry> entry)
    : memory_(memory), config_(std::move(config)), entry_(std::move(entry)),
      findings_(*entry_->code.module, config_, entry_->sharedVariables) {
  const ptx::Function *allocates = code().module->find("malloc");
  if (allocates && !allocates->hasBody)
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

Machine::~Machine() {
  if (gridWorkspace_)
    memory_.free(gridWorkspace_);
}

void LastWriters::note(const Warp &warp, const Op &op, const void *data,
                       int lane) {
  std::lock_guard lock(mutex_);
  writers_[data] = {&op, warp.cta().index(), warp.thread(lane)};
}

const LastWriter *LastWriters::find(const void *data) {
  std::lock_guard lock(mutex_);
  auto found = writers_.find(data);
  return found == writers_.end() ? nullptr : &found->second;
}

} // namespace kiln::sim
