// LaunchChain: who begins when, and who was still under way then.
#include "sim/launch/LaunchChain.h"
#include "sim/launch/LaunchScheduler.h"
#include "sim/program/EntryRules.h"

#include <algorithm>
#include <utility>

namespace kiln::sim {

/// Launches that a later one is compared with where none of those between them
/// waits.
static constexpr std::size_t kMaxUnordered = 8;

LaunchResult PreparedLaunch::result() {
  LaunchResult result = launch->result();
  result.registers = registers.count;
  result.registers_from = registers.from;
  std::optional<Finding> newer = checkVersion(module->module());
  if (newer && !launch->machine().findings().isAllowed(FindingId::ptxVersion))
    result.findings.insert(result.findings.begin(), std::move(*newer));
  return result;
}

void LaunchChain::add(std::shared_ptr<PreparedLaunch> prepared,
                      Finished finished) {
  links_.push_back({std::move(prepared), std::move(finished)});
}

bool LaunchChain::canBegin(std::size_t number) {
  if (number == 0)
    return true;
  Link &ahead = links_[number - 1];
  return ahead.hasEnded ||
         (ahead.hasBegun && ahead.prepared->launch->scheduler().hasTriggered());
}

void LaunchChain::begin(std::size_t number) {
  Link &link = links_[number];
  link.hasBegun = true;
  GridControl &grid = link.machine().gridControl();
  bool hasPrimary = number > 0 || queue_.previous;
  bool isByEvent = number == 0 && queue_.previous && queue_.previous->isByEvent;
  if (isByEvent || (link.prepared->isDependent && hasPrimary))
    grid.depend();
  bool isLazy = link.machine().config().interleaving == Interleaving::lazy;
  grid.hold(!isLazy && number + 1 < links_.size());
}

void LaunchChain::tellEnds() {
  for (std::size_t i = delivered_; i < links_.size(); ++i) {
    GridControl &grid = links_[i].machine().gridControl();
    if (links_[i].hasBegun && !grid.isPrimaryOver())
      links_[i].prepared->launch->scheduler().endPrimary();
    if (!links_[i].hasEnded)
      return;
  }
}

bool LaunchChain::step() {
  bool hasMoved = false;
  for (std::size_t i = delivered_; i < links_.size(); ++i) {
    Link &link = links_[i];
    if (link.hasEnded)
      continue;
    if (!link.hasBegun && !canBegin(i))
      break;
    if (!link.hasBegun) {
      begin(i);
      hasMoved = true;
    }
    tellEnds();
    auto progress = link.prepared->launch->advance();
    hasMoved |= progress != Launch::Progress::stuck;
    link.hasEnded = progress == Launch::Progress::ended;
  }
  return hasMoved;
}

bool LaunchChain::letGo() {
  for (std::size_t i = delivered_; i < links_.size(); ++i) {
    Link &link = links_[i];
    if (link.hasEnded || !link.hasBegun ||
        !link.machine().gridControl().isHolding())
      continue;
    link.prepared->launch->scheduler().letGo();
    return true;
  }
  return false;
}

/// What a launch behind `ended` may overlap, besides itself.
static EndedLaunch::Launches unorderedBehind(const EndedLaunch &ended,
                                             const EndedLaunch &ahead) {
  const GridControl &grid = ended.prepared->launch->machine().gridControl();
  if (grid.isStartBehindWait())
    return {};
  EndedLaunch::Launches all = {ahead.prepared};
  all.insert(all.end(), ahead.before.begin(), ahead.before.end());
  all.resize(std::min(all.size(), kMaxUnordered));
  return all;
}

/// Have a launch compared with those that it may have overlapped.
static void addEarlier(Launch &launch, const EndedLaunch &ahead) {
  LaunchScheduler &scheduler = launch.scheduler();
  scheduler.addEarlier(ahead.prepared->launch->scheduler());
  for (const auto &other : ahead.before)
    scheduler.addEarlier(other->launch->scheduler());
}

void LaunchChain::deliver(Link &link) {
  PreparedLaunch &prepared = *link.prepared;
  const Machine &machine = link.machine();
  auto ended = std::make_shared<EndedLaunch>(EndedLaunch{link.prepared});
  if (auto ahead = std::exchange(queue_.previous, nullptr);
      ahead && machine.gridControl().isDependent()) {
    addEarlier(*prepared.launch, *ahead);
    ended->before = unorderedBehind(*ended, *ahead);
  }
  LaunchResult result = prepared.result();
  bool isWanted = &link != &links_.back() || prepared.isDependent ||
                  machine.code().hasTrigger;
  if (isWanted && machine.config().checks)
    queue_.previous = std::move(ended);
  link.finished(std::move(result));
}

void LaunchChain::deliver() {
  while (delivered_ < links_.size() && links_[delivered_].hasEnded)
    deliver(links_[delivered_++]);
}

Streams::State LaunchChain::advance(bool isLast) {
  if (isLast)
    for (Link &link : links_)
      link.machine().leaveAlone();
  bool hasMoved = false;
  for (;;) {
    bool isMoving = step() || letGo();
    hasMoved |= isMoving;
    deliver();
    if (delivered_ == links_.size())
      return Streams::State::done;
    if (!isMoving)
      return hasMoved ? Streams::State::moved : Streams::State::waiting;
  }
}

} // namespace kiln::sim
