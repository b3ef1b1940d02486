// VectorClock: joining clocks.
#include "sim/clocks/VectorClock.h"

#include <atomic>

namespace kiln::sim {

void Epoch::join(const Epoch &other) {
  all = std::max(all, other.all);
  LaneMask lanes =
      (some > all ? mask : 0) | (other.some > all ? other.mask : 0);
  some = std::max(some, other.some);
  mask = lanes;
  if (mask == kAllLanes)
    all = some;
  if (some <= all) {
    some = 0;
    mask = 0;
  }
}

bool Clock::isCovered(const std::vector<Epoch> &from,
                      const std::vector<Epoch> &by) {
  for (std::size_t i = 0; i < from.size(); ++i) {
    const Epoch &known = from[i];
    if (known.all == 0 && known.some == 0)
      continue;
    if (i >= by.size() || known.all > by[i].all ||
        (known.some && !by[i].covers(known.some, known.mask)))
      return false;
  }
  return true;
}

void Clock::joinView(std::vector<Epoch> &to, const std::vector<Epoch> &from) {
  if (to.size() < from.size())
    to.resize(from.size());
  for (std::size_t i = 0; i < from.size(); ++i)
    to[i].join(from[i]);
}

std::uint64_t Clock::version() const {
  static std::atomic<std::uint64_t> last = 0;
  if (!version_)
    version_ = last.fetch_add(1, std::memory_order_relaxed) + 1;
  return version_;
}

std::shared_ptr<Clock::Block> *Clock::blockOf(std::uint32_t number) {
  auto found = blocks_.begin() + (placeOf(number) - blocks_.cbegin());
  bool isThere = found != blocks_.end() && found->first == number;
  return isThere ? &found->second : nullptr;
}

Clock::Block &Clock::own(std::uint32_t number) {
  version_ = 0;
  std::shared_ptr<Block> *block = blockOf(number);
  if (!block)
    return *blocks_.emplace(placeOf(number), number, std::make_shared<Block>())
                ->second;
  if (block->use_count() != 1)
    *block = std::make_shared<Block>(**block);
  return **block;
}

void Clock::learn(View view, Component component, const Epoch &known) {
  const Epoch *have = find(view, component);
  if (have && known.all <= have->all &&
      (known.some == 0 || have->covers(known.some, known.mask)))
    return;
  auto &list =
      own(component >> kBlockShift).views[static_cast<std::size_t>(view)];
  std::size_t local = component & ((1u << kBlockShift) - 1);
  if (list.size() <= local)
    list.resize(local + 1);
  list[local].join(known);
}

void Clock::join(const Clock &other) {
  if (other.isEmpty())
    return;
  std::uint64_t theirs = other.version();
  if (theirs == version_ ||
      std::find(joined_.begin(), joined_.end(), theirs) != joined_.end())
    return;
  joined_[nextJoined_++ % joined_.size()] = theirs;
  auto isKnown = [](const Block &from, const Block &by) {
    for (std::size_t view = 0; view < kViews; ++view)
      if (!isCovered(from.views[view], by.views[view]))
        return false;
    return true;
  };
  for (const auto &[number, block] : other.blocks_) {
    std::shared_ptr<Block> *mine = blockOf(number);
    if (!mine) {
      blocks_.emplace(placeOf(number), number, block);
      version_ = 0;
      continue;
    }
    if (*mine == block)
      continue;
    if (isKnown(*block, **mine))
      continue;
    // Shared, nothing is compared the next time.
    if (isKnown(**mine, *block)) {
      *mine = block;
      version_ = 0;
      continue;
    }
    Block &joined = own(number);
    for (std::size_t view = 0; view < kViews; ++view)
      joinView(joined.views[view], block->views[view]);
  }
}

void Clock::joinOnly(View view, const Clock &other) {
  auto index = static_cast<std::size_t>(view);
  for (const auto &[number, block] : other.blocks_) {
    std::shared_ptr<Block> *mine = blockOf(number);
    if (mine && isCovered(block->views[index], (*mine)->views[index]))
      continue;
    joinView(own(number).views[index], block->views[index]);
  }
}

void Clock::joinFenced(const Clock &other) {
  constexpr auto kFenced = static_cast<std::size_t>(View::asyncShared);
  for (const auto &[number, block] : other.blocks_)
    for (View view : {View::generic, View::asyncShared, View::completed}) {
      std::shared_ptr<Block> *mine = blockOf(number);
      auto to = static_cast<std::size_t>(view);
      if (!mine || !isCovered(block->views[kFenced], (*mine)->views[to]))
        joinView(own(number).views[to], block->views[kFenced]);
    }
}

void Clock::fenceProxy(View to) {
  for (auto &entry : blocks_) {
    const auto &generic =
        entry.second->views[static_cast<std::size_t>(View::generic)];
    if (isCovered(generic, entry.second->views[static_cast<std::size_t>(to)]))
      continue;
    Block &block = own(entry.first);
    joinView(block.views[static_cast<std::size_t>(to)],
             block.views[static_cast<std::size_t>(View::generic)]);
  }
}

} // namespace kiln::sim
