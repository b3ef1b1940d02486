// SessionLaunches: launches of the program: which are checked, and which are
// written to files.
#include "cudart/LaunchWatch.h"
#include "cudart/Session.h"
#include "kiln/check/simulation.h"
#include "support/Error.h"
#include "support/text/Demangle.h"

#include <algorithm>

namespace kiln::cudart {

LaunchDescription Session::describe(const Launch &launch) {
  Function &function = *launch.function;
  const EntryInfo &entry = function.entry();
  LaunchDescription description;
  description.name = function.name;
  description.module = function.module->share();
  description.grid = launch.grid;
  description.block = launch.block;
  description.cluster = launch.cluster;
  description.dynamic_smem_bytes = launch.dynamicSmemBytes;
  description.cooperative = launch.isCooperative;
  description.dependent = launch.isDependent;
  for (std::size_t i = 0; i < entry.parameter_bytes.size(); ++i) {
    const auto *from =
        launch.packed ? static_cast<const std::byte *>(launch.packed) +
                            entry.parameter_offsets[i]
                      : static_cast<const std::byte *>(launch.parameters[i]);
    if (launch.packed && entry.parameter_offsets[i] + entry.parameter_bytes[i] >
                             launch.packedBytes)
      userError("{} takes {} bytes of parameters and was given {}",
                function.name, entry.parameter_offsets.back(),
                launch.packedBytes);
    description.parameters.push_back(
        {std::vector<std::byte>(from, from + entry.parameter_bytes[i])});
  }
  return description;
}

bool Session::isChosen(const std::string &kernel, std::uint64_t number) const {
  const std::vector<std::uint64_t> &numbers = settings_.launches;
  if (!numbers.empty() &&
      std::find(numbers.begin(), numbers.end(), number) == numbers.end())
    return false;
  return !kernels_ || kernels_->finds(kernel);
}

void Session::run(const LaunchDescription &description, const LaunchNote &note,
                  const Stream &stream, Finished finished) {
  LaunchWatch &watch = LaunchWatch::get();
  if (watch.timeLeft(0) < 0)
    return findings_.refuseForTime(note, settings_.total_time_limit_s);
  watch.announce(note.kernel, note.number);
  Simulation *simulation = opened().simulation();
  auto alone = [&](Finished done) {
    explore({&description, 1}, stream, note.isChosen, std::move(done));
  };
  if (!simulation || capture_)
    return alone(std::move(finished));
  auto orAside = [&](Finished done) {
    aside_.add(*simulation, description, stream, note.isChosen,
               std::move(done));
  };
  if (explore_.sim.memory_limit_bytes) // which is for launches
    return orAside(std::move(finished));
  std::string key = RepeatedLaunches::keyOf(description, note.isChosen);
  if (repeated_.isKnown(key) && !description.dependent)
    aside_.finish();
  if (auto known = repeated_.repeat(key, description)) {
    findings_.countRepeated();
    return finished(*known);
  }
  repeated_.watch(key, *simulation, description, orAside, alone,
                  std::move(finished));
}

void Session::explore(std::span<const LaunchDescription> launches,
                      const Stream &stream, bool isChosen, Finished finished) {
  constexpr double kHardlyAnyS = 0.001; // where the program's time is over
  LaunchWatch &watch = LaunchWatch::get();
  ExploreOptions options = explore_;
  double left = watch.timeLeft(explore_.sim.time_limit_s);
  options.sim.time_limit_s = left < 0 ? kHardlyAnyS : left;
  options.sim.checks &= isChosen;
  options.sim.profile &= isChosen;
  if (!options.sim.checks) {
    options.interleavings = {.only = options.sim.interleaving,
                             .seed = options.sim.seed};
  }
  watch.begin();
  auto ended = [this, finished = std::move(finished)](Exploration exploration) {
    LaunchWatch::get().end();
    finished(std::move(exploration));
    if (LaunchWatch::signal()) {
      findings_.conclude();
      LaunchWatch::leave();
    }
  };
  try {
    explore_in_stream(opened(), launches, stream, options, std::move(ended));
  } catch (...) {
    watch.end();
    throw;
  }
}

Session::Finished Session::capturing(const LaunchDescription &description,
                                     const LaunchNote &note,
                                     const Launch &launch, Finished finished) {
  if (!device().is_done(launch.stream)) {
    findings_.sayOnce(fmt::format(
        "launch {} of {} was not captured: what is before it in its stream "
        "waits for others",
        note.number, note.kernel));
    return finished;
  }
  std::vector<std::string> ptx;
  const ProgramModule &module = *launch.function->module;
  if (!findings_.attempt([&] { ptx = capture_->addModule(module.texts()); }))
    return finished;
  std::shared_ptr<Snapshot> before = device().simulation()->snapshot();
  return [this, description, note, ptx, before,
          finished = std::move(finished)](Exploration exploration) {
    if (findings_.attempt(
            [&] { capture_->write(note, description, ptx, *before); }))
      findings_.countCaptured();
    finished(std::move(exploration));
  };
}

void Session::launch(const Launch &launch) {
  Function &function = *launch.function;
  {
    std::lock_guard lock(mutex_);
    if (function.shown.empty())
      function.shown = demangle(function.name);
  }
  bool isSim = opened().simulation() != nullptr;
  LaunchNote note{++launchCount_, function.shown, launch.grid, launch.block,
                  launch.cluster};
  bool isWanted = isSim && isChosen(note.kernel, note.number);
  note.isChosen = isWanted;
  note.isChecked = isWanted && settings_.sim.checks;
  try {
    LaunchDescription description = describe(launch);
    if (!isSim && findings_.hasReport()) // which has the time
      return findings_.take(
          note, {.runs = {{.launches = {device().launch(description,
                                                        launch.stream)}}}});
    Finished finished = [this, note](const Exploration &exploration) {
      if (exploration.runs.empty())
        return findings_.refuse(note, "the launch ahead of it, which it may "
                                      "overlap, did not finish");
      findings_.take(note, exploration);
    };
    if (isWanted && capture_)
      finished = capturing(description, note, launch, std::move(finished));
    run(description, note, launch.stream, std::move(finished));
  } catch (const Error &error) {
    findings_.refuse(note, error.message());
    throw;
  }
}

} // namespace kiln::cudart
