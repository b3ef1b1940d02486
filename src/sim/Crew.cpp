// Crew: take clusters, run them, and put what came of them in order.
#include "sim/Crew.h"
#include "sim/Residency.h"
#include "support/Error.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <thread>
#include <utility>

namespace kiln::sim {

Crew::Crew(Machine &machine)
    : machine_(machine), config_(machine.config()),
      isTalking_(talksThroughGlobal(machine.code())), order_(machine) {
  if (isTalking_ && config_.hasChecks)
    commonOrder_ = std::make_unique<HappensBefore>(machine);
  for (int axis = 0; axis < 3; ++axis) {
    clusters_[axis] = config_.grid[axis] / config_.cluster[axis];
    count_ *= clusters_[axis];
    perCluster_ *= config_.cluster[axis];
  }
  Residency residency = residencyOf(config_, machine.staticSharedBytes());
  result_.resident_ctas = residency.ctas;
  // Whatever the description says, somebody has to run.
  resident_ = std::max<std::uint64_t>(1, residency.ctas / perCluster_);
  int wanted = config_.threads > 0
                   ? config_.threads
                   : static_cast<int>(std::thread::hardware_concurrency());
  if (!isTalking_)
    threads_ =
        static_cast<int>(std::min<std::uint64_t>(std::max(wanted, 1), count_));
  limit_ = std::max<std::uint64_t>(1, resident_ /
                                          static_cast<std::uint64_t>(threads_));
}

bool Crew::take(Mine &mine) {
  std::uint64_t number = next_++;
  if (number >= count_ || number > machine_.lastWanted)
    return false;
  Dim3 first;
  std::uint64_t rest = number;
  for (int axis = 0; axis < 3; ++axis) {
    first[axis] = static_cast<std::uint32_t>(rest % clusters_[axis]) *
                  config_.cluster[axis];
    rest /= clusters_[axis];
  }
  std::unique_ptr<HappensBefore> own;
  if (config_.hasChecks && !isTalking_)
    own = std::make_unique<HappensBefore>(machine_);
  mine.push_back(std::make_unique<Cluster>(
      machine_, first, number, own ? own.get() : commonOrder_.get()));
  mine.back()->ownOrder = std::move(own);
  if (config_.hasStats || config_.hasTimeline)
    mine.back()->observer =
        std::make_unique<Observer>(config_.hasStats, config_.hasTimeline);
  return true;
}

Crew::Outcome Crew::outcomeOf(Cluster &cluster) {
  Outcome outcome;
  outcome.instructions = cluster.instructions;
  outcome.findings = std::move(cluster.findings);
  outcome.printed = std::move(cluster.printed);
  outcome.order = std::move(cluster.ownOrder);
  if (cluster.observer)
    outcome.cost = cluster.observer->cost;
  if (cluster.observer && cluster.observer->recorder)
    outcome.events = cluster.observer->recorder->take();
  return outcome;
}

void Crew::finish(Mine &mine, std::size_t index, std::optional<Finding> fault) {
  std::unique_ptr<Cluster> cluster = std::move(mine[index]);
  mine.erase(mine.begin() + static_cast<std::ptrdiff_t>(index));
  bool isLast = fault.has_value();
  if (isLast && isTalking_)
    machine_.lastWanted = 0;
  else if (isLast && cluster->number() < machine_.lastWanted)
    machine_.lastWanted = cluster->number();
  std::uint64_t shadowBytes = cluster->shadowBytes();
  Outcome outcome = outcomeOf(*cluster);
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

void Crew::retire(std::uint64_t number, Outcome outcome) {
  waiting_[number] = std::move(outcome);
  while (!waiting_.empty() && waiting_.begin()->first == retired_) {
    absorb(waiting_.begin()->second);
    waiting_.erase(waiting_.begin());
    ++retired_;
    if (config_.progress && !hasEnded_)
      config_.progress(retired_ * perCluster_, count_ * perCluster_);
  }
}

void Crew::absorb(Outcome &outcome) {
  if (hasEnded_)
    return;
  emit(outcome.printed);
  result_.instructions += outcome.instructions;
  cost_.add(outcome.cost);
  if (outcome.order)
    order_.take(*outcome.order);
  for (Finding &finding : outcome.findings)
    if (told_.emplace(finding.id, finding.ptx_line).second)
      result_.findings.push_back(std::move(finding));
  auto &events = result_.timeline.events;
  events.insert(events.end(), std::make_move_iterator(outcome.events.begin()),
                std::make_move_iterator(outcome.events.end()));
  if (!outcome.fault)
    return;
  result_.findings.push_back(std::move(*outcome.fault));
  result_.is_finished = false;
  hasEnded_ = true;
}

void Crew::concludeStopped() {
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
  try {
    machine_.reportStop(standing, done);
  } catch (Fault &caught) {
    end.fault = std::move(caught.finding);
  }
  absorb(end);
}

void Crew::emit(const std::string &text) {
  if (text.empty())
    return;
  if (config_.print)
    return config_.print(text);
  std::fwrite(text.data(), 1, text.size(), stdout);
}

void Crew::print(Cluster &cluster, const std::string &text) {
  std::lock_guard lock(mutex_);
  cluster.printed += text;
  if (!isTalking_ && cluster.number() != retired_)
    return;
  emit(cluster.printed);
  cluster.printed.clear();
}

void Crew::moved() {
  std::lock_guard lock(mutex_);
  ++moves_;
  hasMoved_.notify_all();
}

bool Crew::stepAll(Mine &mine) {
  bool hasMoved = false;
  for (std::size_t i = 0; i < mine.size();) {
    Cluster &one = *mine[i];
    if (one.number() > machine_.lastWanted && !isTalking_) {
      mine.erase(mine.begin() + static_cast<std::ptrdiff_t>(i));
      hasMoved = true;
      continue;
    }
    try {
      bool isAlone = !isTalking_ || mine.size() == 1;
      bool isMoving = one.step(isAlone);
      hasMoved |= isMoving;
      if (one.isDone()) {
        finish(mine, i, std::nullopt);
        continue;
      }
      // Nobody outside can help it.
      if (!isMoving && !one.waitsForOthers())
        machine_.reportDeadlock({&one});
      ++i;
    } catch (Fault &caught) {
      hasMoved = true;
      finish(mine, i, std::move(caught.finding));
    }
  }
  return hasMoved;
}

void Crew::waitForOthers(Mine &mine, std::uint64_t seen) {
  std::unique_lock lock(mutex_);
  if (moves_ != seen)
    return;
  std::vector<Cluster *> own;
  for (auto &one : mine)
    own.push_back(one.get());
  stuck_.insert(stuck_.end(), own.begin(), own.end());
  if (++idle_ == threads_) {
    std::sort(stuck_.begin(), stuck_.end(),
              [](Cluster *a, Cluster *b) { return a->number() < b->number(); });
    std::uint64_t first = stuck_.front()->number();
    Outcome outcome;
    outcome.instructions = stuck_.front()->instructions;
    outcome.findings = std::move(stuck_.front()->findings);
    outcome.order = std::move(stuck_.front()->ownOrder);
    try {
      std::uint64_t begun = std::min(next_.load(), count_);
      machine_.reportDeadlock(stuck_, (count_ - begun) * perCluster_);
    } catch (Fault &caught) {
      outcome.fault = std::move(caught.finding);
    }
    machine_.lastWanted = 0;
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
  if (failure_ || machine_.lastWanted == 0)
    mine.clear();
}

void Crew::work() {
  Mine mine;
  bool canMove = false;
  for (;;) {
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
    while (mine.size() < limit_ && (isTalking_ || !canMove) && take(mine)) {
      hasTaken = true;
      canMove |= !isTalking_;
    }
    if (mine.empty())
      break;
    canMove = stepAll(mine);
    if (canMove)
      moved();
    else if (!mine.empty() && (mine.size() == limit_ || !hasTaken))
      waitForOthers(mine, seen);
  }
  std::lock_guard lock(mutex_);
  std::move(mine.begin(), mine.end(), std::back_inserter(stopped_));
  // Those who wait for others have one fewer to wait for.
  ++idle_;
  ++moves_;
  hasMoved_.notify_all();
}

LaunchResult Crew::run() {
  auto start = std::chrono::steady_clock::now();
  std::uint64_t startTicks = ticksNow();
  machine_.setPrinter([this](Cluster &cluster, const std::string &text) {
    print(cluster, text);
  });
  auto guarded = [this] {
    try {
      work();
    } catch (...) {
      std::lock_guard lock(mutex_);
      failure_ = std::current_exception();
      machine_.lastWanted = 0;
      ++idle_;
      ++moves_;
      hasMoved_.notify_all();
    }
  };
  std::vector<std::thread> pool;
  for (int i = 1; i < threads_; ++i)
    pool.emplace_back(guarded);
  guarded();
  for (std::thread &thread : pool)
    thread.join();
  if (failure_)
    std::rethrow_exception(failure_);
  if (!hasEnded_ && retired_ < count_ && machine_.isStopping())
    concludeStopped();
  std::fflush(stdout);
  if (commonOrder_)
    order_.take(*commonOrder_);
  // What ended the launch is the last thing that happened.
  auto found = order_.findings();
  result_.findings.insert(result_.findings.end() - !result_.is_finished,
                          std::make_move_iterator(found.begin()),
                          std::make_move_iterator(found.end()));
  result_.time_us = std::chrono::duration<double, std::micro>(
                        std::chrono::steady_clock::now() - start)
                        .count();
  if (config_.hasStats) {
    double usPerTick =
        result_.time_us / static_cast<double>(ticksNow() - startTicks);
    result_.stats = statsOf(cost_, usPerTick,
                            result_.time_us * static_cast<double>(threads_));
    std::uint64_t atOnce = isTalking_ ? std::min(resident_, count_) : threads_;
    result_.stats.shadow_bytes =
        shadowPeak_ * atOnce + order_.bytes() +
        (commonOrder_ ? commonOrder_->global().cells.bytes() : 0) +
        machine_.memory().shadowBytes();
  }
  return std::move(result_);
}

} // namespace kiln::sim
