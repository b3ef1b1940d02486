// RepeatedLaunches: launches that would do what an earlier one did.
//
// Programs that measure launch a kernel hundreds of times on the same data. A
// launch follows from its kernel, its shape, its parameters and the memory that
// it touches: where all of these are as they were before, bytes compared, what
// it leaves and what is found in it are known. Kernels that read a clock or
// allocate, launches that print, overlap others or have an error are run every
// time.
#pragma once

#include "kiln/check/explore.h"
#include "kiln/check/simulation.h"

#include <functional>
#include <mutex>
#include <unordered_map>

namespace kiln::cudart {

class RepeatedLaunches {
public:
  using Finished = std::function<void(Exploration)>;
  using Run = std::function<void(Finished)>;

  /// What a launch is known by.
  static std::string keyOf(const LaunchDescription &launch, bool isChosen);

  /// Whether it was launched before; what was put aside is to be run first then.
  bool isKnown(const std::string &key);
  /// What came of it where it would do the same again; memory is left as the
  /// launch leaves it. Null: it has to be run.
  std::shared_ptr<const Exploration> repeat(const std::string &key,
                                            const LaunchDescription &launch);
  /// Run it by `run`, and watch what it does where that is worth it.
  /// `finished` is told of it, which may be later.
  void watch(const std::string &key, Simulation &simulation,
             const LaunchDescription &launch, const Run &run,
             const Run &runAlone, Finished finished);

private:
  struct Known {
    std::weak_ptr<const LoadedModule> module;
    std::uint64_t launches = 0, nextWatch = 2;
    double timeUs = 0; ///< of the last one that was run
    std::shared_ptr<const Footprint> footprint;
    std::shared_ptr<const Exploration> exploration;
  };

  bool isWorthIt(const std::string &key, Simulation &simulation,
                 const LaunchDescription &launch);
  void noteTime(const std::string &key, const Exploration &exploration);
  void keep(const std::string &key, const Snapshot &before,
            const Exploration &exploration);

  std::mutex mutex_; ///< never held while anything is run
  std::unordered_map<std::string, Known> known_;
  std::size_t bytes_ = 0; ///< of all footprints
};

} // namespace kiln::cudart
