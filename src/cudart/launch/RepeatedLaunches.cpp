// RepeatedLaunches: what is remembered of launches, and when.
#include "cudart/launch/RepeatedLaunches.h"
#include "cudart/LaunchWatch.h"

#include <algorithm>
#include <cstring>

namespace kiln::cudart {

/// Shorter launches cost no more than to compare what they touch.
static constexpr double kLeastUs = 5000;
/// Launches that are remembered, and the memory for what they touched.
static constexpr std::size_t kMostLaunches = 1024;
static constexpr std::size_t kMostBytes = std::size_t(1) << 30;

template <typename T> static void append(std::string &key, const T &value) {
  key.append(reinterpret_cast<const char *>(&value), sizeof(value));
}

std::string RepeatedLaunches::keyOf(const LaunchDescription &launch,
                                    bool isChosen) {
  std::string key = launch.name;
  append(key, launch.module.get());
  append(key, launch.grid);
  append(key, launch.block);
  append(key, launch.cluster);
  append(key, launch.dynamic_smem_bytes);
  append(key, launch.cooperative);
  append(key, launch.dependent);
  append(key, isChosen);
  // A session gives all of them as bytes.
  for (const LaunchParameter &parameter : launch.parameters) {
    const auto &bytes = std::get<std::vector<std::byte>>(parameter.value);
    key.append(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  }
  return key;
}

bool RepeatedLaunches::isKnown(const std::string &key) {
  std::lock_guard lock(mutex_);
  return known_.contains(key);
}

std::shared_ptr<const Exploration>
RepeatedLaunches::repeat(const std::string &key,
                         const LaunchDescription &launch) {
  std::shared_ptr<const Footprint> footprint;
  std::shared_ptr<const Exploration> exploration;
  {
    std::lock_guard lock(mutex_);
    auto found = known_.find(key);
    if (found == known_.end() || !found->second.footprint)
      return nullptr;
    Known &known = found->second;
    if (known.module.lock() != launch.module)
      return nullptr;
    footprint = known.footprint;
    exploration = known.exploration;
  }
  return footprint->repeat() ? exploration : nullptr;
}

bool RepeatedLaunches::isWorthIt(const std::string &key, Simulation &simulation,
                                 const LaunchDescription &launch) {
  {
    std::lock_guard lock(mutex_);
    if (known_.size() >= kMostLaunches && !known_.contains(key)) {
      known_.clear();
      bytes_ = 0;
    }
    Known &known = known_[key];
    if (known.module.lock() != launch.module)
      known = {.module = launch.module};
    if (++known.launches < known.nextWatch || known.timeUs < kLeastUs)
      return false;
    known.nextWatch = 2 * known.launches;
  }
  return simulation.is_repeatable(launch);
}

void RepeatedLaunches::noteTime(const std::string &key,
                                const Exploration &exploration) {
  double timeUs = 0;
  for (const ExploredRun &run : exploration.runs)
    for (const LaunchResult &result : run.launches)
      timeUs += result.time_us;
  std::lock_guard lock(mutex_);
  if (auto found = known_.find(key); found != known_.end())
    found->second.timeUs = timeUs;
}

/// Whether it said nothing that has to be said again.
static bool isQuiet(const Exploration &exploration) {
  return std::all_of(
      exploration.runs.begin(), exploration.runs.end(),
      [](const ExploredRun &run) {
        return run.is_finished && run.printed.empty() &&
               std::all_of(run.launches.begin(), run.launches.end(),
                           [](const LaunchResult &result) {
                             return result.is_finished && result.ok();
                           });
      });
}

void RepeatedLaunches::keep(const std::string &key, const Snapshot &before,
                            const Exploration &exploration) {
  if (!isQuiet(exploration))
    return;
  auto known = std::make_shared<Exploration>(exploration);
  for (ExploredRun &run : known->runs)
    for (LaunchResult &result : run.launches)
      result.time_us = 0;
  std::size_t room = 0;
  {
    std::lock_guard lock(mutex_);
    room = kMostBytes - std::min(bytes_, kMostBytes);
  }
  std::shared_ptr<const Footprint> footprint = before.footprint(room);
  if (!footprint)
    return;
  std::lock_guard lock(mutex_);
  auto found = known_.find(key);
  if (found == known_.end())
    return;
  if (found->second.footprint)
    bytes_ -= std::min(bytes_, found->second.footprint->bytes());
  bytes_ += footprint->bytes();
  found->second.footprint = std::move(footprint);
  found->second.exploration = std::move(known);
}

namespace {
/// What came of a launch, for whoever is there when it comes.
struct Outcome {
  std::mutex mutex;
  std::optional<Exploration> exploration;
  bool isLate = false; ///< nobody waits for it any more
};
} // namespace

void RepeatedLaunches::watch(const std::string &key, Simulation &simulation,
                             const LaunchDescription &launch, const Run &run,
                             const Run &runAlone, Finished finished) {
  auto tell = [this, key, finished = std::move(finished)](
                  Exploration exploration) {
    noteTime(key, exploration);
    finished(std::move(exploration));
  };
  std::unique_ptr<Snapshot> before;
  if (isWorthIt(key, simulation, launch))
    before = simulation.snapshot();
  if (!before || !before->is_idle())
    return run(tell);
  auto outcome = std::make_shared<Outcome>();
  {
    // What others write meanwhile is not the launch's.
    std::unique_lock<std::recursive_mutex> alone = before->hold();
    runAlone([outcome, tell](Exploration exploration) {
      std::unique_lock lock(outcome->mutex);
      if (!outcome->isLate && !LaunchWatch::signal()) {
        outcome->exploration = std::move(exploration);
        return;
      }
      lock.unlock();
      tell(std::move(exploration));
    });
    std::lock_guard lock(outcome->mutex);
    outcome->isLate = true;
    if (outcome->exploration)
      keep(key, *before, *outcome->exploration);
  }
  if (outcome->exploration)
    tell(std::move(*outcome->exploration));
}

} // namespace kiln::cudart
