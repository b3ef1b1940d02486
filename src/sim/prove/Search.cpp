// Search: choices, alternatives, and the next execution.
#include "sim/prove/Search.h"
#include "sim/launch/Residency.h"
#include "sim/machine/Machine.h"
#include "sim/program/Effect.h"
#include "support/Error.h"

#include <algorithm>

namespace kiln::sim {

/// Instructions of a turn that ends at a stop.
static constexpr int kLongTurn = 1 << 20;
/// Steps of an execution; each knows all that come before it.
static constexpr std::size_t kMostSteps = 1 << 14;

static bool holds(const std::vector<int> &list, int process) {
  return std::find(list.begin(), list.end(), process) != list.end();
}

bool Search::Node::isAsleep(int process) const {
  return std::any_of(
      sleepers.begin(), sleepers.end(),
      [&](const Sleeper &sleeper) { return sleeper.process == process; });
}

void Search::begin(Machine &machine) {
  stops_.emplace(machine.code());
  recorder_.emplace(*stops_);
  recorder_->registersMatter = registersMatter_;
  isTalking_ = talksThroughGlobal(machine.code());
  if (isTalking_)
    focus_.reset();
  steps_ = 0;
  current_ = {};
  last_ = previous_ = again_ = -1;
  isRedundant_ = hasGivenUp_ = isFocusOver_ = false;
  known_.clear();
  work_.clear();
  inFlight_.clear();
  waiting_.clear();
  lanes_.clear();
  begunBehind_.clear();
}

void Search::begin(Cluster &cluster) {
  if (focus_ && cluster.number() != *focus_)
    return;
  cluster.watchers().add(*recorder_);
  // One that had no room before begins because another has ended.
  if (steps_)
    for (std::size_t rank = 0; rank < cluster.size(); ++rank)
      begunBehind_[cluster.cta(static_cast<int>(rank)).number()] = steps_ - 1;
}

void Search::end(Cluster &cluster) {
  closeStep();
  isFocusOver_ |= focus_ && cluster.number() == *focus_;
}

int Search::numberOf(const Process &process) {
  auto [found, isNew] =
      numbers_.try_emplace(process, static_cast<int>(processes_.size()));
  if (isNew)
    processes_.push_back(process);
  return found->second;
}

int Search::processOf(const Ready &one) {
  if (one.kind == Ready::Kind::work)
    return work_.at(one.work.get());
  const Group &group = one.warp->groups()[one.group];
  return numberOf({.cta = one.warp->cta().number(),
                   .warp = one.warp->index(),
                   .lane = firstLane(group.lanes)});
}

Search::Known &Search::known(int process) {
  auto index = static_cast<std::size_t>(process);
  if (index >= known_.size())
    known_.resize(std::max(index + 1, processes_.size()));
  return known_[index];
}

bool Search::isOurs(const Ready &one) const {
  return one.cluster && (!focus_ || one.cluster->number() == *focus_);
}

void Search::adoptWork(std::span<const Ready> ready) {
  std::erase_if(inFlight_, [&](const auto &work) {
    return work->isDone && work_.erase(work.get());
  });
  for (const Ready &one : ready) {
    if (one.kind != Ready::Kind::work || !isOurs(one) ||
        work_.contains(one.work.get()) || last_ < 0)
      continue;
    Process process{
        .isWork = true, .issuer = last_, .number = known(last_).issued++};
    int number = numberOf(process);
    work_[one.work.get()] = number;
    inFlight_.push_back(one.work);
    known(number) = {.before = lastBefore_, .reductions = recorder_->issued()};
  }
}

/// The group that a lane is in; null: it has left.
static const Group *groupOf(Warp &warp, int lane) {
  for (const Group &group : warp.groups())
    if (group.lanes >> lane & 1)
      return &group;
  return nullptr;
}

bool Search::isVoid(const Current &turn, const Touches &touches) const {
  if (!turn.warp || turn.warp->effects != turn.effects)
    return false;
  const Group *group = groupOf(*turn.warp, turn.lane);
  return group && group->pc == turn.pc && stops_->isAwait(turn.pc) &&
         std::all_of(touches.begin(), touches.end(),
                     [](const Touch &touch) { return isLook(touch.how); });
}

void Search::closeStep() {
  Current step = std::exchange(current_, {});
  if (step.process < 0)
    return;
  Touches touches = recorder_->take();
  // What it waited for was done in it.
  for (const auto &work : inFlight_)
    if (work->isDone) {
      const Touches &more = known(work_.at(work.get())).reductions;
      touches.insert(touches.end(), more.begin(), more.end());
    }
  // An atomic that changes nothing has read.
  if (step.warp && step.warp->effects == step.effects)
    for (Touch &touch : touches)
      if (touch.of == Touch::Of::memory) {
        touch.how = Touch::How::read;
        touch.phase = 0;
      }
  if (!step.isChoice) {
    if (!touches.empty() && doubt_.empty())
      doubt_ = "something that others can see happened between two choices";
    return;
  }
  if (isVoid(step, touches)) {
    Node &node = path_[steps_];
    node.blocked.push_back(step.process);
    node.waiting.push_back(step.process);
    // What it has read may order accesses that nothing orders without it.
    isRedundant_ |= node.isAlternative;
    noteWaiting(steps_, step.process, touches);
    waiting_[step.process] = std::move(touches);
    return;
  }
  again_ = -1;
  if (touches.empty()) {
    again_ = step.process;
    return;
  }
  addStep(step, std::move(touches));
}

void Search::addStep(const Current &step, Touches touches) {
  std::erase_if(waiting_, [&](const auto &one) {
    return areDependent(one.second, touches);
  });
  if (hasGivenUp_ && doubt_.empty())
    doubt_ = "lanes went on by a rule of the simulator that is no choice, such "
             "as the time-out of a wait";
  std::size_t number = steps_++;
  if (step.warp) {
    auto &last = lanes_[{step.cta, step.warp->index()}];
    forEachLane(step.lanes,
                [&](int lane) { last[lane] = static_cast<int>(number) + 1; });
  }
  lastBefore_ = {number};
  if (number < trace_.size()) {
    const Trace::Step &was = trace_[number];
    if ((was.process != step.process || was.touches != touches) &&
        doubt_.empty())
      doubt_ = "an execution could not be repeated: the kernel depends on "
               "something else than the order of its steps";
    return;
  }
  auto races =
      trace_.add({step.process, std::move(touches), {}, step.op}, step.before);
  if (pruning_ == Pruning::source && !isReplay_)
    for (std::size_t earlier : races)
      noteRace(earlier, number);
}

void Search::noteRace(std::size_t earlier, std::size_t later) {
  if (isEnabling(trace_[earlier].touches, trace_[later].touches))
    return;
  Node &node = path_[earlier];
  int best = -1;
  bool isUnknown = false;
  for (int process : trace_.initials(earlier, later)) {
    if (holds(node.blocked, process) || !holds(node.enabled, process)) {
      isUnknown |= !holds(node.waiting, process);
      if (process == trace_[later].process)
        noteWaiting(earlier, process, trace_[later].touches);
      continue;
    }
    if (holds(node.wanted, process) || node.isAsleep(process))
      return;
    if (best < 0 || process == trace_[later].process)
      best = process;
  }
  if (best >= 0) {
    node.wanted.push_back(best);
    return;
  }
  // Whoever waits there would not go before what lets it go. Else something is
  // missing in what is known of their order.
  for (int process : node.enabled)
    if (isUnknown && !holds(node.blocked, process) &&
        !holds(node.wanted, process))
      node.wanted.push_back(process);
}

void Search::noteWaiting(std::size_t before, int process, Touches looks) {
  if (pruning_ == Pruning::all || isReplay_)
    return;
  for (Touch &touch : looks)
    touch.how = Touch::How::read;
  std::optional<std::size_t> own; // the first of those that led it there
  for (std::size_t step = before; step-- > 0;) {
    if (trace_[step].process == process)
      own = step;
    if (trace_[step].process == process ||
        !areDependent(trace_[step].touches, looks))
      continue;
    if (own && trace_[*own].past.has(step))
      continue;
    if (own)
      return noteRace(step, *own);
    Node &node = path_[step];
    if (!holds(node.enabled, process) || holds(node.blocked, process))
      continue; // it waited then, too
    if (!holds(node.wanted, process) && !node.isAsleep(process))
      node.wanted.push_back(process);
    return;
  }
}

void Search::noteAllWaiting(std::span<const Ready> ready) {
  if (steps_ < trace_.size())
    return;
  for (const Ready &one : ready) {
    if (one.kind != Ready::Kind::lanes || !isOurs(one))
      continue;
    int process = processOf(one);
    auto found = waiting_.find(process);
    noteWaiting(steps_, process,
                found == waiting_.end()
                    ? stops_->looksOf(*one.warp,
                                      one.warp->groups()[one.group])
                    : found->second);
  }
}

std::optional<std::size_t>
Search::immediate(std::span<const Ready> ready) const {
  for (std::size_t i = 0; i < ready.size(); ++i) {
    const Ready &one = ready[i];
    // Clusters that nobody looks at take turns as ever, when all else is over.
    if (one.kind == Ready::Kind::cluster &&
        (!focus_ || begun_ <= *focus_ || isFocusOver_))
      return i;
    if (one.kind != Ready::Kind::lanes || !isOurs(one))
      continue;
    const Group &group = one.warp->groups()[one.group];
    if (!stops_->isStop(group.pc))
      return i;
    const Op &op = one.warp->code().ops[static_cast<std::size_t>(group.pc)];
    if (op.guard.isValid() && !(one.warp->pred(op.guard) & group.lanes))
      return i;
  }
  return std::nullopt;
}

std::vector<Search::Candidate>
Search::candidates(std::span<const Ready> ready) {
  std::vector<Candidate> list;
  stuck_.clear();
  for (std::size_t i = 0; i < ready.size(); ++i) {
    const Ready &one = ready[i];
    bool isUnknown =
        one.kind == Ready::Kind::work && !work_.contains(one.work.get());
    if (!isOurs(one) || isUnknown)
      continue;
    int process = processOf(one);
    bool isWaiting = waiting_.contains(process), canGo = true, isPoll = false;
    if (one.kind == Ready::Kind::lanes) {
      const Group &group = one.warp->groups()[one.group];
      const Op &op = one.warp->code().ops[static_cast<std::size_t>(group.pc)];
      canGo = stops_->canGo(*one.warp, group);
      // Who has given registers back comes before it in no record.
      isWaiting |= !canGo && op.effect->kind != EffectKind::registers;
      isPoll = stops_->isAwait(group.pc) && !stops_->isAwaiting(group);
    }
    if (isWaiting)
      stuck_.push_back(process);
    else if (canGo)
      list.push_back({process, i, isPoll});
  }
  return list;
}

Search::Node Search::makeNode(const std::vector<Candidate> &candidates) {
  Node node;
  node.waiting = stuck_;
  for (const Candidate &one : candidates)
    node.enabled.push_back(one.process);
  if (pruning_ == Pruning::all)
    node.wanted = node.enabled;
  if (steps_ == 0 || pruning_ == Pruning::all)
    return node;
  const Touches &done = trace_[steps_ - 1].touches;
  for (const Sleeper &sleeper : path_[steps_ - 1].sleepers)
    if (!areDependent(sleeper.touches, done))
      node.sleepers.push_back(sleeper);
  return node;
}

int Search::pickAmong(Node &node, const std::vector<Candidate> &candidates) {
  auto isOpen = [&](int process) {
    return !holds(node.blocked, process) && !node.isAsleep(process);
  };
  // Polls come last, that they are tried when they may succeed; whoever has
  // gone last goes on, that there are few switches; work is done where nobody
  // else can go.
  int best = -1, most = -1;
  for (const Candidate &one : candidates) {
    if (!isOpen(one.process))
      continue;
    int rank = 4 * holds(node.wanted, one.process) + 2 * !one.isPoll +
               (one.process == previous_);
    if (rank > most) {
      most = rank;
      best = one.process;
    }
  }
  if (best < 0)
    return -1;
  if (!holds(node.wanted, best))
    node.wanted.push_back(best);
  return node.process = best;
}

int Search::pick(const std::vector<Candidate> &candidates) {
  auto isThere = [&](int process) {
    return std::any_of(
        candidates.begin(), candidates.end(),
        [&](const Candidate &one) { return one.process == process; });
  };
  if (again_ >= 0) {
    if (isThere(again_))
      return again_;
    path_[steps_].blocked.push_back(again_);
    again_ = -1;
  }
  if (steps_ == path_.size())
    path_.push_back(makeNode(candidates));
  Node &node = path_[steps_];
  if (node.process >= 0 && !holds(node.blocked, node.process)) {
    if (isThere(node.process))
      return node.process;
    // It may stand behind what others did here that nobody can see.
    for (int process : node.blocked)
      if (isThere(process) && !holds(node.waiting, process))
        return process;
    if (doubt_.empty())
      doubt_ = "somebody who was chosen could not go on";
    node.blocked.push_back(node.process);
  }
  return pickAmong(node, candidates);
}

Turn Search::go(std::span<const Ready> ready, std::size_t chosen,
                bool isChoice) {
  const Ready &one = ready[chosen];
  Turn turn{chosen, kLongTurn, stops_->marks()};
  if (one.kind == Ready::Kind::cluster) {
    ++begun_;
    return turn;
  }
  last_ = processOf(one);
  current_ = {.process = last_, .isChoice = isChoice};
  if (one.kind == Ready::Kind::work) {
    recorder_->beginWork();
    current_.before = lastBefore_ = known(last_).before;
    return turn;
  }
  const Group &group = one.warp->groups()[one.group];
  current_.warp = one.warp;
  current_.cta = one.warp->cta().number();
  current_.effects = one.warp->effects;
  current_.pc = group.pc;
  current_.lane = firstLane(group.lanes);
  current_.lanes = group.lanes;
  current_.op = &one.warp->code().ops[static_cast<std::size_t>(group.pc)];
  recorder_->beginLanes(*one.warp, group, isChoice);
  auto &last = lanes_[{current_.cta, one.warp->index()}];
  forEachLane(group.lanes, [&](int lane) {
    if (last[lane])
      current_.before.push_back(static_cast<std::size_t>(last[lane] - 1));
  });
  if (auto found = begunBehind_.find(current_.cta); found != begunBehind_.end())
    current_.before.push_back(found->second);
  std::sort(current_.before.begin(), current_.before.end());
  current_.before.erase(
      std::unique(current_.before.begin(), current_.before.end()),
      current_.before.end());
  lastBefore_ = current_.before;
  return turn;
}

Turn Search::choose(std::span<const Ready> ready) {
  closeStep();
  adoptWork(ready);
  if (steps_ >= kMostSteps && doubt_.empty())
    doubt_ = fmt::format("after {} steps of one execution", kMostSteps);
  if (isRedundant_ || steps_ >= kMostSteps || (cancel_ && *cancel_)) {
    stop_ = true;
    return {ready.empty() ? Turn::kNone : 0, 1, stops_->marks()};
  }
  if (auto one = immediate(ready))
    return go(ready, *one, false);
  auto list = candidates(ready);
  if (list.empty()) {
    noteAllWaiting(ready);
    return {};
  }
  int process = pick(list);
  if (process < 0) {
    isRedundant_ = std::any_of(list.begin(), list.end(), [&](const auto &one) {
      return path_[steps_].isAsleep(one.process);
    });
    if (!isRedundant_)
      return {};
    stop_ = true;
    return {list.front().ready, 1, stops_->marks()};
  }
  for (const Candidate &one : list)
    if (one.process == process) {
      previous_ = process;
      return go(ready, one.ready, true);
    }
  return {};
}

void Search::giveUp() { hasGivenUp_ = !focus_ || begun_ > *focus_; }

bool Search::next() {
  closeStep();
  recorder_.reset();
  stops_.reset();
  begun_ = 0;
  if (isReplay_)
    return false;
  for (; !path_.empty(); path_.pop_back()) {
    std::size_t depth = path_.size() - 1;
    Node &node = path_[depth];
    if (depth < trace_.size())
      node.sleepers.push_back({node.process, trace_[depth].touches});
    else
      node.blocked.push_back(node.process); // which did nothing
    node.process = -1;
    node.isAlternative = true;
    for (int process : node.wanted)
      if (!holds(node.blocked, process) && !node.isAsleep(process)) {
        node.process = process;
        break;
      }
    if (depth < trace_.size())
      trace_.shorten(depth);
    if (node.process >= 0)
      return true;
  }
  return false;
}

void Search::replay(const std::vector<int> &path) {
  isReplay_ = true;
  for (int process : path) {
    Node node;
    node.process = process;
    node.wanted = {process};
    path_.push_back(node);
  }
}

bool Search::needsRegisters() const {
  if (registersMatter_)
    return false;
  // All that is given back would be there in any order, and it was enough.
  for (std::size_t later = 0; later < trace_.size(); ++later) {
    const Op *op = trace_[later].op;
    if (!op || op->effect->kind != EffectKind::registers || op->flags)
      continue;
    for (std::size_t earlier = 0; earlier < later; ++earlier) {
      const Op *other = trace_[earlier].op;
      if (other && other->effect->kind == EffectKind::registers &&
          other->flags && trace_[later].past.has(earlier))
        return true;
    }
  }
  return false;
}

double Search::progress() const {
  // Of each branch on the path, how much lies behind it.
  double done = 0, part = 1;
  for (const Node &node : path_) {
    auto open = static_cast<double>(node.wanted.size());
    auto behind = static_cast<double>(
        std::count_if(node.wanted.begin(), node.wanted.end(), [&](int process) {
          return process != node.process &&
                 (node.isAsleep(process) || holds(node.blocked, process));
        }));
    if (open < 1)
      continue;
    done += part * behind / open;
    part /= open;
  }
  return done;
}

} // namespace kiln::sim
