// LaunchChoices: turns of a launch in which a strategy chooses.
#include "sim/launch/LaunchScheduler.h"

namespace kiln::sim {

bool LaunchScheduler::stepStuck(Mine &mine) {
  bool hasMoved = false;
  for (auto &one : mine)
    hasMoved |= one->unblock();
  if (hasMoved)
    return true;
  config_.strategy->giveUp();
  return stepAll(mine);
}

bool LaunchScheduler::stepChosen(Mine &mine) {
  ready_.clear();
  for (auto &one : mine)
    if (!one->isHeld)
      one->addReady(ready_);
  if (hasResumed_ || (mine.size() < limit_ && hasMore()))
    ready_.push_back({.kind = Ready::Kind::cluster});
  Turn turn = config_.strategy->choose(ready_);
  if (turn.chosen >= ready_.size())
    return stepStuck(mine);
  Ready chosen = ready_[turn.chosen];
  if (chosen.kind == Ready::Kind::cluster) {
    bool hasTaken = take(mine);
    if (hasTaken)
      config_.strategy->begin(*mine.back());
    return hasTaken;
  }
  std::size_t index = 0;
  while (mine[index].get() != chosen.cluster)
    ++index;
  try {
    go(chosen, turn);
    if (chosen.cluster->isDone() && !chosen.cluster->hasWork())
      finish(mine, index, std::nullopt);
  } catch (Fault &caught) {
    finish(mine, index, std::move(caught.finding));
  }
  return true;
}

} // namespace kiln::sim
