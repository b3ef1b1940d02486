// LaunchScheduler: take clusters, run them, and put what came of them in order.
#include "sim/launch/LaunchScheduler.h"
#include "sim/launch/Residency.h"
#include "sim/launch/Spectator.h"
#include "sim/report/Alike.h"
#include "sim/report/Endings.h"
#include "support/Error.h"
#include "support/HostProcessor.h"
#include "support/limits/Reserve.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <thread>
#include <utility>

namespace kiln::sim {

LaunchScheduler::LaunchScheduler(Machine &machine)
    : machine_(machine), config_(machine.config()),
      isTalking_(talksThroughGlobal(machine.code())), races_(machine) {
  if (isTalking_ && config_.checks)
    commonChecks_ = std::make_unique<LaunchChecks>(machine);
  if (config_.profile)
    profiler_ = std::make_unique<LaunchProfiler>(machine);
  for (int axis = 0; axis < 3; ++axis) {
    clusters_[axis] = config_.grid[axis] / config_.cluster[axis];
    count_ *= clusters_[axis];
    perCluster_ *= config_.cluster[axis];
  }
  Residency residency = residencyOf(config_, machine.staticSharedBytes());
  result_.resident_ctas = residency.ctas;
  // Whatever the description says, somebody has to run.
  resident_ = std::max<std::uint64_t>(1, residency.ctas / perCluster_);
  // The C++ library opens a file of the system to count them.
  static const auto cores =
      static_cast<int>(std::thread::hardware_concurrency());
  int wanted = config_.threads > 0 ? config_.threads : cores;
  // Blocks are given out in the order of the calls, and findings name them.
  if (!isTalking_ && !machine.usesHeap() && !config_.strategy)
    threads_ =
        static_cast<int>(std::min<std::uint64_t>(std::max(wanted, 1), count_));
  limit_ = std::max<std::uint64_t>(1, resident_ /
                                          static_cast<std::uint64_t>(threads_));
  machine.setCanceller([this] { return cancelLast(); });
  if (config_.strategy)
    config_.strategy->begin(machine);
}

Dim3 LaunchScheduler::firstCtaOf(std::uint64_t number) const {
  Dim3 first;
  for (int axis = 0; axis < 3; ++axis) {
    first[axis] = static_cast<std::uint32_t>(number % clusters_[axis]) *
                  config_.cluster[axis];
    number /= clusters_[axis];
  }
  return first;
}

std::optional<Dim3> LaunchScheduler::cancelLast() {
  // Those who ask are run by one thread.
  if (!isTalking_ || next_ >= count_)
    return std::nullopt;
  return firstCtaOf(--count_);
}

bool LaunchScheduler::takeAside(Mine &mine) {
  std::lock_guard lock(mutex_);
  if (resumed_.empty())
    return false;
  mine.push_back(std::move(resumed_.front()));
  resumed_.pop_front();
  hasResumed_ = !resumed_.empty();
  return true;
}

bool LaunchScheduler::take(Mine &mine) {
  if (hasResumed_ && takeAside(mine))
    return true;
  std::uint64_t number = next_++;
  if (number >= count_ || number > lastWanted_)
    return false;
  Dim3 first = firstCtaOf(number);
  std::unique_ptr<LaunchChecks> own;
  if (config_.checks && !isTalking_)
    own = std::make_unique<LaunchChecks>(machine_, count_ > 1);
  mine.push_back(std::make_unique<Cluster>(
      machine_, first, number, own ? own.get() : commonChecks_.get()));
  mine.back()->ownChecks = std::move(own);
  if (isTalking_)
    mine.back()->sharedWriters = &machine_.lastWriters();
  if (config_.stats || config_.timeline || config_.detail) {
    auto observer = std::make_unique<LaunchObserver>(
        config_.stats, config_.timeline || config_.detail);
    if (config_.detail)
      observer->watchDetail(*mine.back(), racesOf(*mine.back()));
    else
      observer->watch(*mine.back());
    mine.back()->observer = std::move(observer);
  }
  if (profiler_)
    profiler_->watch(*mine.back());
  if (Spectator *spectator = Spectator::current())
    spectator->begin(*mine.back(), racesOf(*mine.back()));
  return true;
}

RaceDetector *LaunchScheduler::racesOf(Cluster &cluster) {
  if (commonChecks_)
    return &commonChecks_->races();
  auto *own = static_cast<LaunchChecks *>(cluster.ownChecks.get());
  return own ? &own->races() : nullptr;
}

ClusterDetail LaunchScheduler::detailOf(Cluster &cluster,
                                        const Outcome &outcome, bool hasFault) {
  auto &observer = static_cast<LaunchObserver &>(*cluster.observer);
  if (!observer.detail)
    return {};
  bool isShown = hasFault || cluster.number() == 0 || !outcome.findings.empty();
  auto *own = static_cast<LaunchChecks *>(outcome.checks.get());
  if (RaceDetector *races = own ? &own->races() : racesOf(cluster))
    for (const RaceFinding &found : races->findings())
      for (std::size_t rank = 0; rank < cluster.size(); ++rank)
        isShown |= found.finding.cta ==
                   cluster.cta(static_cast<int>(rank)).index();
  return observer.detail->take(isShown);
}

LaunchScheduler::Outcome LaunchScheduler::outcomeOf(Cluster &cluster,
                                                    bool hasFault) {
  Outcome outcome;
  outcome.instructions = cluster.instructions;
  outcome.findings = std::move(cluster.findings);
  outcome.quota = std::move(cluster.quota);
  outcome.printed = std::move(cluster.printed);
  outcome.checks = std::move(cluster.ownChecks);
  outcome.profiler = std::move(cluster.profiler);
  if (!cluster.observer)
    return outcome;
  auto &observer = static_cast<LaunchObserver &>(*cluster.observer);
  outcome.cost = observer.cost;
  // The details have it too.
  if (config_.timeline)
    outcome.events = Recorder(*observer.recorder).take();
  outcome.detail = detailOf(cluster, outcome, hasFault);
  return outcome;
}

void LaunchScheduler::finish(Mine &mine, std::size_t index,
                             std::optional<Finding> fault) {
  if (Spectator *spectator = Spectator::current()) {
    if (fault)
      spectator->ending(*fault);
    spectator->end(*mine[index]);
  }
  std::unique_ptr<Cluster> cluster = std::move(mine[index]);
  mine.erase(mine.begin() + static_cast<std::ptrdiff_t>(index));
  if (config_.strategy)
    config_.strategy->end(*cluster);
  bool isLast = fault.has_value();
  if (isLast && isTalking_)
    lastWanted_ = 0;
  else if (isLast && cluster->number() < lastWanted_)
    lastWanted_ = cluster->number();
  std::uint64_t shadowBytes = cluster->shadowBytes();
  if (fault && cluster->observer)
    if (auto &observer = static_cast<LaunchObserver &>(*cluster->observer);
        observer.detail)
      observer.detail->stamp(*fault);
  Outcome outcome = outcomeOf(*cluster, fault.has_value());
  outcome.fault = std::move(fault);
  std::lock_guard lock(mutex_);
  shadowPeak_ = std::max(shadowPeak_, shadowBytes);
  if (isLast && isTalking_) {
    // It is the last thing that happened; what the others found came before.
    for (auto &one : mine)
      waiting_[one->number()] = outcomeOf(*one);
    for (auto &[number, other] : waiting_)
      absorb(other);
    absorb(outcome);
    mine.clear();
    return;
  }
  retire(cluster->number(), std::move(outcome));
}

void LaunchScheduler::retire(std::uint64_t number, Outcome outcome) {
  waiting_[number] = std::move(outcome);
  while (!waiting_.empty() && waiting_.begin()->first == retired_) {
    absorb(waiting_.begin()->second);
    waiting_.erase(waiting_.begin());
    ++retired_;
    if (config_.progress && !hasEnded_)
      config_.progress(retired_ * perCluster_, count_ * perCluster_);
  }
}

void LaunchScheduler::absorb(Outcome &outcome) {
  if (hasEnded_)
    return;
  emit(outcome.printed);
  result_.instructions += outcome.instructions;
  cost_.add(outcome.cost);
  detail_.add(std::move(outcome.detail));
  if (outcome.checks)
    races_.take(std::unique_ptr<LaunchChecks>(
        static_cast<LaunchChecks *>(outcome.checks.release())));
  if (outcome.profiler)
    profiler_->add(*outcome.profiler);
  leftOut_.take(outcome.quota);
  if (!outcome.findings.empty()) {
    std::move(outcome.findings.begin(), outcome.findings.end(),
              std::back_inserter(result_.findings));
    joinAlike(result_.findings, /*hasEnd=*/false);
    keepMost(result_.findings, config_.max_findings, false, leftOut_);
  }
  auto &events = result_.timeline.events;
  events.insert(events.end(), std::make_move_iterator(outcome.events.begin()),
                std::make_move_iterator(outcome.events.end()));
  if (!outcome.fault)
    return;
  result_.findings.push_back(std::move(*outcome.fault));
  result_.is_finished = false;
  hasEnded_ = true;
}

void LaunchScheduler::concludeStopped() {
  std::uint64_t done = (retired_ + waiting_.size()) * perCluster_;
  std::sort(stopped_.begin(), stopped_.end(),
            [](auto &a, auto &b) { return a->number() < b->number(); });
  std::vector<Cluster *> standing;
  for (auto &cluster : stopped_) {
    standing.push_back(cluster.get());
    waiting_[cluster->number()] = outcomeOf(*cluster);
  }
  // An error of one that waited for others to end is told too; what ended the
  // launch is the stop.
  for (auto &[number, outcome] : waiting_) {
    if (outcome.fault)
      outcome.findings.push_back(*std::exchange(outcome.fault, std::nullopt));
    absorb(outcome);
  }
  Outcome end;
  end.fault = describeStop(machine_, standing, done);
  absorb(end);
}

void LaunchScheduler::emit(const std::string &text) {
  if (text.empty())
    return;
  if (config_.print)
    return config_.print(text);
  std::fwrite(text.data(), 1, text.size(), stdout);
}

void LaunchScheduler::print(Cluster &cluster, const std::string &text) {
  std::lock_guard lock(mutex_);
  cluster.printed += text;
  if (!isTalking_ && cluster.number() != retired_)
    return;
  emit(cluster.printed);
  cluster.printed.clear();
}

void LaunchScheduler::moved() {
  std::lock_guard lock(mutex_);
  ++moves_;
  ++steps_;
  hasMoved_.notify_all();
}

/// Let a cluster do something; where that ends it, it is a fault.
template <typename Body> static auto withFaults(Cluster &cluster, Body &&body) {
  try {
    return body();
  } catch (const LimitReached &) {
    throw Fault{describeLimit(cluster)};
  } catch (const EndlessLoop &endless) {
    throw Fault{describeEndless(endless.warp, endless.loop)};
  }
}

bool LaunchScheduler::step(Cluster &cluster, bool isAlone) {
  return withFaults(cluster, [&] { return cluster.step(isAlone); });
}

void LaunchScheduler::go(const Ready &one, const Turn &turn) {
  withFaults(*one.cluster, [&] { one.cluster->go(one, turn); });
}

bool LaunchScheduler::stepAll(Mine &mine) {
  bool hasMoved = false;
  for (std::size_t i = 0; i < mine.size();) {
    Cluster &one = *mine[i];
    if (one.number() > lastWanted_ && !isTalking_) {
      mine.erase(mine.begin() + static_cast<std::ptrdiff_t>(i));
      hasMoved = true;
      continue;
    }
    if (one.isHeld) {
      ++i;
      continue;
    }
    try {
      bool isAlone = !isTalking_ || mine.size() == 1;
      bool isMoving = step(one, isAlone);
      hasMoved |= isMoving;
      if (one.isDone()) {
        finish(mine, i, std::nullopt);
        continue;
      }
      // Nobody outside can help it.
      if (!isMoving && !one.waitsForOthers())
        throw Fault{describeDeadlock(machine_, {&one})};
      ++i;
    } catch (Fault &caught) {
      hasMoved = true;
      finish(mine, i, std::move(caught.finding));
    }
  }
  return hasMoved;
}

LaunchScheduler::AfterHeld LaunchScheduler::settleHeld(Mine &mine) {
  std::size_t held = 0, waiting = 0;
  for (auto &one : mine) {
    held += one->isHeld;
    waiting += !one->isHeld && one->waitsForPrimary();
  }
  if (held + waiting == 0)
    return AfterHeld::wait;
  bool isFull = mine.size() >= limit_;
  if (!isFull && (hasMore() || hasResumed_))
    return AfterHeld::goOn; // with others
  if (held + waiting == mine.size() && !hasMore())
    return AfterHeld::leave;
  // They have the place of others, or others wait for them.
  for (auto &one : mine)
    if (std::exchange(one->isHeld, false) && isFull && hasMore())
      break;
  return held ? AfterHeld::goOn : AfterHeld::leave;
}

bool LaunchScheduler::waitForOthers(Mine &mine, std::uint64_t seen) {
  std::unique_lock lock(mutex_);
  if (moves_ != seen)
    return false;
  std::vector<Cluster *> own;
  for (auto &one : mine)
    own.push_back(one.get());
  // Whoever is waited for may be outside; only one thread waits for such.
  if (!config_.isAlone && isTalking_)
    return true;
  if (!machine_.gridControl().isPrimaryOver())
    return true;
  stuck_.insert(stuck_.end(), own.begin(), own.end());
  if (++idle_ == threads_) {
    std::sort(stuck_.begin(), stuck_.end(),
              [](Cluster *a, Cluster *b) { return a->number() < b->number(); });
    std::uint64_t first = stuck_.front()->number();
    Outcome outcome;
    outcome.instructions = stuck_.front()->instructions;
    outcome.findings = std::move(stuck_.front()->findings);
    outcome.quota = std::move(stuck_.front()->quota);
    outcome.checks = std::move(stuck_.front()->ownChecks);
    outcome.profiler = std::move(stuck_.front()->profiler);
    std::uint64_t begun = std::min(next_.load(), count_);
    outcome.fault =
        describeDeadlock(machine_, stuck_, (count_ - begun) * perCluster_);
    if (Spectator *spectator = Spectator::current())
      spectator->ending(*outcome.fault);
    for (Cluster *cluster : stuck_)
      if (cluster->observer)
        outcome.detail.add(detailOf(*cluster, outcome, /*hasFault=*/true));
    lastWanted_ = 0;
    retire(first, std::move(outcome));
    ++moves_;
    hasMoved_.notify_all();
  } else {
    hasMoved_.wait(lock, [&] { return moves_ != seen || failure_; });
  }
  --idle_;
  std::erase_if(stuck_, [&](Cluster *cluster) {
    return std::find(own.begin(), own.end(), cluster) != own.end();
  });
  if (failure_ || lastWanted_ == 0)
    mine.clear();
  return false;
}

void LaunchScheduler::work() {
  Mine mine;
  bool canMove = false, isAside = false;
  while (!isAside) {
    std::uint64_t seen;
    {
      std::lock_guard lock(mutex_);
      seen = moves_;
    }
    // Asked after `moves_`, so that nobody takes those who stop for stuck.
    if (machine_.isStopping())
      break;
    // A cluster that can move is run to its end before the next is begun,
    // unless they talk: then all that fit are there.
    bool hasTaken = false;
    canMove &= !mine.empty();
    while (!config_.strategy && mine.size() < limit_ &&
           (isTalking_ || !canMove) && take(mine)) {
      hasTaken = true;
      canMove |= !isTalking_;
    }
    if (mine.empty() && !(config_.strategy && hasMore()))
      break;
    canMove = config_.strategy ? stepChosen(mine) : stepAll(mine);
    if (canMove) {
      moved();
      continue;
    }
    AfterHeld turn = settleHeld(mine);
    isAside = turn == AfterHeld::leave || (turn == AfterHeld::wait && !mine.empty() &&
                                      (mine.size() == limit_ || !hasTaken) &&
                                      waitForOthers(mine, seen));
  }
  std::lock_guard lock(mutex_);
  std::move(mine.begin(), mine.end(),
            std::back_inserter(isAside ? aside_ : stopped_));
  // Those who wait for others have one fewer to wait for.
  ++idle_;
  ++moves_;
  hasMoved_.notify_all();
}

void LaunchScheduler::runThreads() {
  auto guarded = [this] {
    try {
      work();
    } catch (...) {
      std::lock_guard lock(mutex_);
      failure_ = std::current_exception();
      lastWanted_ = 0;
      ++idle_;
      ++moves_;
      hasMoved_.notify_all();
    }
  };
  std::vector<std::thread> pool;
  reserveBounded(pool, static_cast<std::size_t>(threads_));
  try {
    for (int i = 1; i < threads_; ++i)
      pool.emplace_back(guarded);
  } catch (const std::exception &) {
    // Where the machine gives fewer threads, those do it; this one is not idle
    // yet, so that nobody has taken the others for all.
    std::lock_guard lock(mutex_);
    threads_ = 1 + static_cast<int>(pool.size());
  }
  guarded();
  for (std::thread &thread : pool)
    thread.join();
  if (failure_)
    std::rethrow_exception(failure_);
}

bool LaunchScheduler::advance() {
  auto start = std::chrono::steady_clock::now();
  std::uint64_t startTicks = ticksNow();
  machine_.setPrinter([this](Cluster &cluster, const std::string &text) {
    print(cluster, text);
  });
  idle_ = 0;
  std::move(aside_.begin(), aside_.end(), std::back_inserter(resumed_));
  aside_.clear();
  hasResumed_ = !resumed_.empty();
  runThreads();
  // Those that no thread had room for, or who was stopped.
  std::move(resumed_.begin(), resumed_.end(),
            std::back_inserter(machine_.isStopping() ? stopped_ : aside_));
  resumed_.clear();
  timeUs_ += std::chrono::duration<double, std::micro>(
                 std::chrono::steady_clock::now() - start)
                 .count();
  ticks_ += ticksNow() - startTicks;
  return aside_.empty();
}

bool LaunchScheduler::hasTriggered() const {
  return !hasMore() &&
         std::all_of(aside_.begin(), aside_.end(),
                     [](const auto &one) { return one->hasTriggered(); });
}

void LaunchScheduler::endPrimary() {
  machine_.gridControl().endPrimary();
  for (auto &one : aside_)
    one->notify();
}

void LaunchScheduler::letGo() {
  machine_.gridControl().hold(false);
  for (auto &one : aside_)
    one->isHeld = false;
}

LaunchResult LaunchScheduler::result() {
  if (!hasEnded_ && retired_ < count_ && machine_.isStopping())
    concludeStopped();
  std::fflush(stdout);
  if (commonChecks_)
    races_.takeCommon(commonChecks_->races());
  for (LaunchRaces *earlier : earlier_)
    races_.compareWith(*earlier);
  // What ended the launch is the last thing that happened.
  auto found = races_.findings();
  result_.findings.insert(result_.findings.end() - !result_.is_finished,
                          std::make_move_iterator(found.begin()),
                          std::make_move_iterator(found.end()));
  joinAlike(result_.findings, !result_.is_finished);
  leftOut_.take(races_.quota());
  keepMost(result_.findings, config_.max_findings, !result_.is_finished,
           leftOut_);
  result_.findings_left_out = leftOut_.leftOut();
  result_.time_us = timeUs_;
  if (config_.detail)
    result_.detail = std::make_shared<const LaunchDetail>(
        sim::detailOf(machine_, std::move(detail_)));
  if (config_.stats) {
    double usPerTick = result_.time_us / static_cast<double>(ticks_);
    result_.stats = statsOf(cost_, usPerTick,
                            result_.time_us * static_cast<double>(threads_));
    std::uint64_t atOnce = isTalking_ ? std::min(resident_, count_) : threads_;
    result_.stats.shadow_bytes = shadowPeak_ * atOnce + races_.bytes() +
                                 (commonChecks_ ? commonChecks_->bytes() : 0) +
                                 machine_.memory().shadowBytes();
  }
  if (profiler_)
    result_.profile = profiler_->conclude(
        occupancyOf(config_, machine_.staticSharedBytes()),
        result_.is_finished);
  return std::move(result_);
}

} // namespace kiln::sim
