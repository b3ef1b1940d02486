// Snapshot: copies of regions.
#include "sim/launch/Snapshot.h"

#include <algorithm>

namespace kiln::sim {

namespace {
class Snapshot final : public SimSnapshot {
public:
  explicit Snapshot(std::shared_ptr<GlobalMemory> memory)
      : memory_(std::move(memory)) {
    for (const auto &[base, region] : memory_->regions())
      if (!region->isReadOnly)
        kept_.push_back(
            {base,
             {region->data.get(), region->data.get() + region->bytes},
             region->valid});
  }

  void restore() const override {
    for (const Kept &kept : kept_) {
      auto found = memory_->regions().find(kept.base);
      if (found == memory_->regions().end() ||
          found->second->bytes != kept.data.size())
        continue;
      std::copy(kept.data.begin(), kept.data.end(), found->second->data.get());
      found->second->valid = kept.valid;
    }
  }

private:
  struct Kept {
    std::uint64_t base;
    std::vector<std::uint8_t> data;
    ValidBits valid;
  };
  std::shared_ptr<GlobalMemory> memory_;
  std::vector<Kept> kept_;
};
} // namespace

std::unique_ptr<SimSnapshot>
takeSnapshot(std::shared_ptr<GlobalMemory> memory) {
  return std::make_unique<Snapshot>(std::move(memory));
}

} // namespace kiln::sim
