// Machine: what a launch is made of, and who wrote what last.
#include "sim/machine/Machine.h"

namespace kiln::sim {

Machine::Machine(GlobalMemory &memory, LaunchConfig config,
                 std::shared_ptr<const DecodedEntry> entry)
    : memory_(memory), config_(std::move(config)), entry_(std::move(entry)),
      findings_(*entry_->code.module, config_, entry_->sharedVariables) {}

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
