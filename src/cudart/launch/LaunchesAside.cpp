// LaunchesAside: who joins whom, and for how long.
#include "cudart/launch/LaunchesAside.h"
#include "kiln/base/error.h"
#include "kiln/check/simulation.h"

#include <utility>

namespace kiln::cudart {

/// For so long a launch waits for a dependent one.
static constexpr auto kPatience = std::chrono::milliseconds(50);
/// Launches that run together; the next one is compared with the last of them.
static constexpr std::size_t kMostTogether = 8;

LaunchesAside::~LaunchesAside() {
  {
    std::lock_guard lock(mutex_);
    isEnded_ = true;
    hasChanged_.notify_all();
  }
  if (timer_.joinable())
    timer_.join();
}

/// What came of launch number `i` of those that ran together.
static Exploration partOf(const Exploration &all, std::size_t i) {
  Exploration part{.single_because = all.single_because};
  for (const ExploredRun &run : all.runs)
    if (i < run.launches.size())
      part.runs.push_back({.interleaving = run.interleaving,
                           .launches = {run.launches[i]},
                           .printed = i == 0 ? run.printed : "",
                           .is_finished = run.launches[i].is_finished});
  return part;
}

void LaunchesAside::add(Simulation &simulation, const LaunchDescription &launch,
                        const Stream &stream, bool isChosen,
                        Finished finished) {
  std::lock_guard lock(mutex_);
  bool isJoining = launch.dependent && !launches_.empty() &&
                   launches_.size() < kMostTogether &&
                   stream_.native() == stream.native() &&
                   isChosen_ == isChosen;
  if (!isJoining)
    finishLocked();
  bool isOverlapped = simulation.lets_dependents_begin(launch);
  if (launches_.empty() && !isOverlapped)
    return run_({&launch, 1}, stream, isChosen, std::move(finished));
  simulation.check(launch);
  launches_.push_back(launch);
  finished_.push_back(std::move(finished));
  stream_ = stream;
  isChosen_ = isChosen;
  if (!isOverlapped)
    return finishLocked();
  deadline_ = std::chrono::steady_clock::now() + kPatience;
  if (!timer_.joinable())
    timer_ = std::thread([this] { keepTime(); });
  hasChanged_.notify_all();
}

void LaunchesAside::finish() {
  std::lock_guard lock(mutex_);
  finishLocked();
}

void LaunchesAside::finishLocked() {
  if (launches_.empty())
    return;
  // Whoever asks while they run finds none.
  auto launches = std::exchange(launches_, {});
  auto finished =
      std::make_shared<std::vector<Finished>>(std::exchange(finished_, {}));
  auto tell = [finished](const Exploration &all) {
    for (std::size_t i = 0; i < finished->size(); ++i)
      (*finished)[i](partOf(all, i));
  };
  try {
    run_(launches, stream_, isChosen_, tell);
  } catch (const Error &) {
    tell({}); // they were looked at when they came: memory has run out since
  }
}

void LaunchesAside::keepTime() {
  std::unique_lock lock(mutex_);
  while (!isEnded_) {
    if (launches_.empty())
      hasChanged_.wait(lock);
    else if (hasChanged_.wait_until(lock, deadline_) ==
                 std::cv_status::timeout &&
             std::chrono::steady_clock::now() >= deadline_)
      finishLocked();
  }
}

} // namespace kiln::cudart
