// LaunchConfig: what a launch is asked to do, and how it is watched.
#pragma once

#include "kiln/check/sim.h"
#include "kiln/run/device.h"
#include "sim/program/Program.h"

#include <vector>

namespace kiln::sim {

/// The options of the device, with its description, and what this launch adds.
struct LaunchConfig : SimOptions {
  Dim3 grid = {1, 1, 1}, block = {1, 1, 1}, cluster = {1, 1, 1};
  std::uint32_t dynamicSmemBytes = 0;
  std::vector<std::uint8_t> params;        ///< the entry's parameter space
  std::vector<SharedObject> sharedObjects; ///< that have names
  /// Nobody else writes global memory while it runs; otherwise a launch in
  /// which nothing moves is put aside, and goes on when asked.
  bool isAlone = true;
  bool isCooperative = false;
  /// Of a program that is decoded for this launch alone.
  Execution execution = Execution::fast;
  /// Registers per thread that occupancy is told with, where that is asked for,
  /// and who says so; 0: nobody does.
  int profiledRegisters = 0;
  const char *profiledRegistersFrom = "";
};

} // namespace kiln::sim
