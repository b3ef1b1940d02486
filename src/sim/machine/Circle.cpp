// Circle: keep the places of all warps, and wait for them to come back.
#include "sim/machine/Circle.h"
#include "sim/machine/Machine.h"

#include <algorithm>

namespace kiln::sim {

/// What barriers count, and no warp reads.
static void addBarriers(const Cta &cta, std::vector<std::uint64_t> &places) {
  for (const auto &[address, barrier] : cta.mbarriers) {
    places.push_back(std::uint64_t(barrier.pending) << 1 | (barrier.phase & 1));
    places.push_back(static_cast<std::uint64_t>(barrier.txCount));
  }
  for (const CtaBarrier &barrier : cta.barriers)
    places.push_back(barrier.arrived);
  places.push_back(static_cast<std::uint64_t>(cta.registerPool));
}

/// What decides, beside registers and memory, how a group goes on.
static void addGroups(const Cluster &cluster, Warp &warp,
                      std::vector<std::uint64_t> &places) {
  for (const Group &group : warp.groups())
    for (std::uint64_t value :
         {static_cast<std::uint64_t>(group.pc),
          static_cast<std::uint64_t>(group.refusedPc),
          static_cast<std::uint64_t>(group.hasTimedOut),
          static_cast<std::uint64_t>(group.blockedEpoch == cluster.epoch)})
      places.push_back(value);
}

/// Where a warp is that waits, in a loop that stands still or at a barrier.
/// False: it does something, or some of its lanes wait for the others, which
/// they will not do for ever.
static bool addWaits(Warp &warp, std::vector<std::uint64_t> &places) {
  for (const Group &group : warp.groups()) {
    bool isWaiting =
        group.isSpinning || group.wait.kind != WaitReason::Kind::none;
    if (!isWaiting)
      return false;
    places.push_back(static_cast<std::uint64_t>(group.roundPc));
    places.push_back(group.roundState);
  }
  places.push_back(warp.effects);
  return true;
}

bool Circle::findPlaces(Cluster &cluster) {
  const LaunchConfig &config = cluster.machine().config();
  bool isAlone = config.grid == config.cluster && config.isAlone;
  now_.clear();
  first_ = nullptr;
  for (std::size_t rank = 0; rank < cluster.size(); ++rank)
    for (const auto &warp : cluster.cta(static_cast<int>(rank)).warps()) {
      if (warp->isDone())
        continue;
      auto place = warp->watch().placeInCircle(*warp);
      if (!place && !addWaits(*warp, now_))
        return false;
      if (place && warp->watch().readsGlobal() && !isAlone)
        return false;
      if (place)
        now_.push_back(*place);
      if (place && !first_)
        first_ = warp.get();
      addGroups(cluster, *warp, now_);
    }
  if (!first_ || (!isAlone && cluster.waitsForOthers()))
    return false;
  for (std::size_t rank = 0; rank < cluster.size(); ++rank)
    addBarriers(cluster.cta(static_cast<int>(rank)), now_);
  now_.push_back(cluster.barrierArrived);
  return true;
}

/// A try_wait may say no when its time is up, and something else may follow.
static void timeOutWaits(Cluster &cluster) {
  for (std::size_t rank = 0; rank < cluster.size(); ++rank)
    for (const auto &warp : cluster.cta(static_cast<int>(rank)).warps()) {
      if (warp->watch().placeInCircle(*warp))
        continue;
      for (Group &group : warp->groups())
        group.hasTimedOut |= group.wait.kind == WaitReason::Kind::mbarrier;
      warp->wake();
    }
}

Warp *Circle::turn(Cluster &cluster) {
  if (!findPlaces(cluster)) {
    kept_.clear();
    found_ = 0;
    return nullptr;
  }
  ++turns_;
  bool isBack = now_ == kept_;
  if (isBack && turns_ == period_) {
    kept_.clear();
    // What was put off as long as somebody moves is not put off for ever.
    if (cluster.performOne())
      found_ = 0;
    else if (++found_ == kTries)
      return first_;
    ++changes_;
    timeOutWaits(cluster);
    return nullptr;
  }
  if (isBack) {
    period_ = turns_;
    turns_ = 0;
    return nullptr;
  }
  bool isNew = kept_.empty();
  if (isNew || turns_ >= rest_ || (period_ && turns_ >= period_)) {
    kept_ = now_;
    rest_ = isNew ? 2 : 2 * rest_;
    turns_ = period_ = 0;
  }
  return nullptr;
}

} // namespace kiln::sim
