// Machine: what a launch is made of, and who wrote what last.
#include "sim/machine/Machine.h"

namespace kiln::sim {

Machine::Machine(GlobalMemory &memory, LaunchConfig config, Code code,
                 std::uint32_t staticSharedBytes,
                 std::vector<std::pair<std::string, Symbol>> sharedVariables)
    : memory_(memory), config_(std::move(config)), code_(std::move(code)),
      staticSharedBytes_(staticSharedBytes),
      findings_(*code_.module, config_, std::move(sharedVariables)) {}

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
