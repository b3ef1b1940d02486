// Footprint: kept block by block, compared and put back.
#include "sim/launch/Footprint.h"

#include <algorithm>

namespace kiln::sim {

bool LaunchFootprint::Contents::isIn(const Region &region,
                                     std::size_t begin) const {
  return std::equal(data.begin(), data.end(), region.data.get() + begin) &&
         std::equal(valid.begin(), valid.end(),
                    region.valid.words() + begin / 64);
}

void LaunchFootprint::Contents::putInto(Region &region,
                                        std::size_t begin) const {
  region.touch(region.base + begin, data.size(), /*isWrite=*/true);
  std::copy(data.begin(), data.end(), region.data.get() + begin);
  std::copy(valid.begin(), valid.end(), region.valid.words() + begin / 64);
}

bool LaunchFootprint::add(const Region &region, const TouchLog &log,
                          std::size_t most) {
  Part part{region.base, region.bytes, region.valid.flip(), {}};
  for (std::size_t i = 0; i < log.blockCount(); ++i) {
    if (!log.isTouched(i))
      continue;
    std::size_t begin = i * TouchLog::kBlockBytes;
    std::size_t bytes = std::min(TouchLog::kBlockBytes, region.bytes - begin);
    std::size_t words = (bytes + 63) / 64;
    auto contents = [&](const std::uint8_t *data, const std::uint64_t *valid) {
      bytes_ += bytes + words * sizeof(*valid);
      return Contents{{data, data + bytes}, {valid, valid + words}};
    };
    Block block{begin, contents(log.data(region, i), log.valid(region, i)), {}};
    if (!block.found.isIn(region, begin))
      block.left = contents(region.data.get() + begin,
                            region.valid.words() + begin / 64);
    if (bytes_ > most)
      return false;
    part.blocks.push_back(std::move(block));
  }
  if (!part.blocks.empty())
    parts_.push_back(std::move(part));
  return true;
}

Region *LaunchFootprint::find(const Part &part) const {
  auto found = memory_->regions().find(part.base);
  if (found == memory_->regions().end())
    return nullptr;
  Region &region = *found->second;
  bool isSame = region.bytes == part.bytes && region.valid.flip() == part.flip;
  return isSame ? &region : nullptr;
}

bool LaunchFootprint::repeat() const {
  std::lock_guard lock(streams_->mutex());
  if (!streams_->areEmpty())
    return false;
  for (const Part &part : parts_) {
    const Region *region = find(part);
    if (!region ||
        !std::all_of(part.blocks.begin(), part.blocks.end(),
                     [&](const Block &block) {
                       return block.found.isIn(*region, block.begin);
                     }))
      return false;
  }
  for (const Part &part : parts_)
    for (const Block &block : part.blocks)
      if (!block.left.data.empty())
        block.left.putInto(*find(part), block.begin);
  streams_->forgetPrevious(nullptr);
  return true;
}

} // namespace kiln::sim
