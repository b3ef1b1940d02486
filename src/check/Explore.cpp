// Explore: the one loop over interleavings.
#include "kiln/check/explore.h"
#include "kiln/check/simulation.h"
#include "support/Error.h"

#include <algorithm>
#include <cstdio>
#include <mutex>

namespace kiln {

/// How many where nobody says another number: eager, lazy and a random one.
static constexpr std::uint64_t kDefaultInterleavings = 3;

std::string SeededInterleaving::to_string() const {
  if (kind == Interleaving::random)
    return fmt::format("random, seed {}", seed);
  return name(kind);
}

std::vector<SeededInterleaving> Interleavings::list() const {
  std::uint64_t wanted = count ? count : only ? 1 : kDefaultInterleavings;
  if (wanted > kMaxInterleavings)
    userError("{} interleavings are too many; use at most {}", wanted,
              kMaxInterleavings);
  std::vector<SeededInterleaving> all;
  if (only && *only != Interleaving::random) {
    if (wanted > 1)
      userError("there is one {} interleaving, not {}; use random or all for "
                "more",
                name(*only), wanted);
    return {{*only, seed}};
  }
  if (!only)
    all = {{Interleaving::eager, seed}, {Interleaving::lazy, seed}};
  for (std::uint64_t next = seed; all.size() < wanted; ++next)
    all.push_back({Interleaving::random, next});
  all.resize(wanted);
  return all;
}

void Interleavings::set(std::string_view text) {
  if (text == "all")
    only.reset();
  else
    only = parse_interleaving(text);
}

std::string Interleavings::word() const { return only ? name(*only) : "all"; }

namespace {

/// Memory as it was, from the end of this scope on, whatever happens in it.
class PutBack {
public:
  explicit PutBack(Device &device)
      : memory_(device.simulation()->snapshot()) {}
  ~PutBack() { memory_->restore(); }
  PutBack(const PutBack &) = delete;
  PutBack &operator=(const PutBack &) = delete;

private:
  std::unique_ptr<Snapshot> memory_;
};

/// The loop's options and launches, and what a run has left to say.
class Explorer {
public:
  Explorer(Device &device, std::span<const LaunchDescription> launches,
           const ExploreOptions &options)
      : device_(device), launches_(launches), options_(options),
        interleavings_(options.interleavings.list()) {}

  /// Decide how many runs there are, and say so where that is one.
  void choose(Exploration &exploration);
  std::size_t count() const { return interleavings_.size(); }
  /// What the launches of run number `i` bring along.
  std::shared_ptr<const SimOptions> optionsOf(std::size_t i,
                                              std::string &printed) const;
  ExploredRun run(std::size_t i, const Stream &stream = {}) const;
  const SeededInterleaving &interleaving(std::size_t i) const {
    return interleavings_[i];
  }

private:
  /// Launch some of them, of which all but the first are dependent.
  std::vector<LaunchResult>
  launch(std::span<const LaunchDescription> launches,
         const std::shared_ptr<const SimOptions> &options,
         const Stream &stream) const;

  Device &device_;
  std::span<const LaunchDescription> launches_;
  const ExploreOptions &options_;
  std::vector<SeededInterleaving> interleavings_;
};

} // namespace

void Explorer::choose(Exploration &exploration) {
  Simulation *simulation = device_.simulation();
  if (!simulation) {
    interleavings_.resize(1);
    exploration.single_because = "the device is not a simulator";
    return;
  }
  if (interleavings_.size() == 1)
    return;
  const Interleavings &asked = options_.interleavings;
  if (!options_.sim.checks && !asked.only && !asked.count) {
    interleavings_.resize(1);
    exploration.single_because = "checks are off";
    return;
  }
  bool canReorder = false;
  for (const LaunchDescription &launch : launches_)
    canReorder =
        canReorder || launch.dependent || simulation->can_reorder(launch);
  if (canReorder)
    return;
  interleavings_.resize(1);
  exploration.single_because =
      "nothing in it can be reordered (no asynchronous operations, atomic or "
      "ordered accesses, mbarriers or cluster barriers)";
}

std::shared_ptr<const SimOptions>
Explorer::optionsOf(std::size_t i, std::string &printed) const {
  auto options = std::make_shared<SimOptions>(options_.sim);
  options->interleaving = interleavings_[i].kind;
  options->seed = interleavings_[i].seed;
  options->profile &= i == 0; // each interleaving costs the same
  // The first run's output is the program's.
  auto print = i == 0 ? options_.sim.print : nullptr;
  bool isShown = i == 0;
  options->print = [&printed, print, isShown](const std::string &text) {
    printed += text;
    if (print)
      print(text);
    else if (isShown)
      std::fwrite(text.data(), 1, text.size(), stdout);
  };
  if (auto progress = options_.sim.progress; progress && count() > 1)
    options->progress = [progress, i, runs = count()](std::uint64_t done,
                                                      std::uint64_t all) {
      progress(i * all + done, runs * all);
    };
  return options;
}

std::vector<LaunchResult>
Explorer::launch(std::span<const LaunchDescription> launches,
                 const std::shared_ptr<const SimOptions> &options,
                 const Stream &stream) const {
  std::vector<LaunchDescription> all(launches.begin(), launches.end());
  for (LaunchDescription &launch : all)
    launch.options = options;
  Simulation *simulation = device_.simulation();
  if (simulation && all.back().dependent)
    return simulation->launch_chain(all, stream);
  std::vector<LaunchResult> results;
  for (const LaunchDescription &launch : all)
    results.push_back(device_.launch(launch, stream));
  return results;
}

ExploredRun Explorer::run(std::size_t i, const Stream &stream) const {
  ExploredRun run{.interleaving = interleavings_[i]};
  auto options = optionsOf(i, run.printed);
  for (std::size_t first = 0; first < launches_.size() && run.is_finished;) {
    std::size_t end = first + 1;
    while (end < launches_.size() && launches_[end].dependent)
      ++end;
    for (LaunchResult &result :
         launch(launches_.subspan(first, end - first), options, stream)) {
      // What is behind a launch that did not finish says nothing.
      if (!run.is_finished)
        break;
      run.is_finished = result.is_finished;
      run.launches.push_back(std::move(result));
    }
    first = end;
  }
  return run;
}

Exploration explore(Device &device, std::span<const LaunchDescription> launches,
                    const ExploreOptions &options, const AfterRun &after) {
  Exploration exploration;
  Explorer explorer(device, launches, options);
  // One alone is refused before it runs in any case.
  Simulation *simulation = device.simulation();
  if (simulation && launches.size() > 1) {
    auto checked = std::make_shared<SimOptions>(options.sim);
    for (LaunchDescription launch : launches) {
      launch.options = checked;
      simulation->check(launch);
    }
  }
  explorer.choose(exploration);
  std::unique_ptr<Snapshot> before;
  std::optional<PutBack> first;
  if (explorer.count() > 1)
    before = simulation->snapshot();
  for (std::size_t i = 0; i < explorer.count(); ++i) {
    if (i == 1)
      first.emplace(device);
    if (i > 0)
      before->restore();
    exploration.runs.push_back(explorer.run(i));
    if (after)
      after(exploration.runs.back());
    if (!exploration.runs.back().is_finished)
      break;
  }
  return exploration;
}

namespace {
/// A launch in a stream: its first run may end after everybody has left.
struct Pending {
  std::mutex mutex;
  Exploration exploration;
  ExploredRun run;
  std::size_t ended = 0; ///< launches of it
  bool hasEnded = false;
  bool isLeft = false; ///< nobody waits for the first run any more
  std::function<void(Exploration)> finished;
};
} // namespace

/// A launch of the first run is over; the last one ends the run.
static void takeResult(Pending &pending, LaunchResult result,
                       std::size_t count) {
  std::unique_lock lock(pending.mutex);
  ExploredRun &run = pending.run;
  // What is behind a launch that did not finish says nothing.
  if (run.is_finished) {
    run.is_finished = result.is_finished;
    run.launches.push_back(std::move(result));
  }
  if (++pending.ended < count)
    return;
  pending.exploration.runs.push_back(std::move(run));
  pending.hasEnded = true;
  if (!pending.isLeft)
    return;
  lock.unlock();
  pending.finished(std::move(pending.exploration));
}

/// Put the first run into the stream.
static std::shared_ptr<Pending>
startFirst(Device &device, const Explorer &explorer,
           std::vector<LaunchDescription> launches, const Stream &stream,
           std::function<void(Exploration)> finished) {
  auto pending = std::make_shared<Pending>();
  pending->finished = std::move(finished);
  pending->run.interleaving = explorer.interleaving(0);
  auto options =
      std::make_shared<SimOptions>(*explorer.optionsOf(0, pending->run.printed));
  for (LaunchDescription &launch : launches)
    launch.options = options;
  auto ended = [pending, count = launches.size()](LaunchResult result) {
    takeResult(*pending, std::move(result), count);
  };
  if (launches.size() > 1)
    device.simulation()->enqueue_chain(launches, stream, ended);
  else
    device.enqueue(launches.front(), stream, ended);
  return pending;
}

void explore_in_stream(Device &device,
                       std::span<const LaunchDescription> launches,
                       const Stream &stream, const ExploreOptions &options,
                       std::function<void(Exploration)> finished) {
  Explorer explorer(device, launches, options);
  Exploration plan;
  explorer.choose(plan);
  std::unique_ptr<Snapshot> before;
  std::unique_lock<std::recursive_mutex> lock;
  if (explorer.count() > 1) {
    before = device.simulation()->snapshot();
    lock = before->hold();
  }
  bool isAlone = !before || before->is_idle();
  auto pending =
      startFirst(device, explorer, {launches.begin(), launches.end()}, stream,
                 std::move(finished));
  std::unique_lock guard(pending->mutex);
  Exploration &exploration = pending->exploration;
  exploration.single_because = plan.single_because;
  if (explorer.count() > 1 && !(isAlone && pending->hasEnded))
    exploration.single_because =
        isAlone ? "it waits for the host or for another stream"
                : "other launches were under way";
  if (!pending->hasEnded) {
    pending->isLeft = true;
    return;
  }
  guard.unlock();
  if (exploration.single_because.empty() && explorer.count() > 1) {
    PutBack first(device);
    for (std::size_t i = 1;
         i < explorer.count() && exploration.runs.back().is_finished; ++i) {
      before->restore();
      exploration.runs.push_back(explorer.run(i, stream));
    }
  }
  lock = {};
  pending->finished(std::move(exploration));
}

} // namespace kiln
