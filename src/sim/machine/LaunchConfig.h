// LaunchConfig: what a launch is asked to do, and how it is watched.
#pragma once

#include "kiln/device.h"
#include "sim/program/Lanes.h"

#include <atomic>
#include <functional>
#include <string>
#include <vector>

namespace kiln::sim {

/// When asynchronous work takes effect.
enum class EffectOrder : std::uint8_t { eager, lazy, random };

struct LaunchConfig {
  Dim3 grid = {1, 1, 1}, block = {1, 1, 1}, cluster = {1, 1, 1};
  std::uint32_t dynamicSmemBytes = 0;
  std::vector<std::uint8_t> params;        ///< the entry's parameter space
  std::vector<SharedObject> sharedObjects; ///< that have names
  DeviceDescription device;
  EffectOrder order = EffectOrder::eager;
  std::uint64_t seed = 0;
  bool hasChecks = true;
  /// Nobody else writes global memory while it runs; otherwise a launch in
  /// which nothing moves is put aside, and goes on when asked.
  bool isAlone = true;
  bool isCooperative = false;
  int threads = 0;                   ///< host threads; 0: all
  int registersAtEntry = 0;          ///< per thread; 0: setmaxnreg does nothing
  std::uint64_t maxInstructions = 0; ///< per CTA; 0: no limit
  double timeLimitS = 0;             ///< of the launch; 0: no limit
  std::vector<std::string> allow, warn; ///< ids of findings
  bool hasStats = false, hasTimeline = false;
  std::function<void(std::uint64_t, std::uint64_t)> progress;
  const std::atomic<bool> *cancel = nullptr;
  /// Takes the kernel's printf; empty: stdout does.
  std::function<void(const std::string &)> print;
};

} // namespace kiln::sim
