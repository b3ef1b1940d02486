// Capture: launches of a program as files, to be run again by `kiln sim`.
//
// FOLDER/3-scale.json is the launch file of launch 3; beside it lie the PTX of
// its module and, in FOLDER/3-scale, what the launch found in the memory that
// it touched. Everything keeps its address, so that pointers hold.
#pragma once

#include "cudart/Findings.h"
#include "kiln/check/sim.h"

#include <map>
#include <mutex>

namespace kiln::cudart {

class Capture {
public:
  /// Throws UserError where the folder cannot be made.
  explicit Capture(std::string folder);

  /// Write the texts of a module, once; their names in the folder.
  std::vector<std::string> addModule(const std::vector<std::string> &texts);
  /// Write a launch that has ended and began with `before`. Throws
  /// RuntimeError.
  void write(const LaunchNote &note, const LaunchDescription &launch,
             const std::vector<std::string> &ptx, const Snapshot &before);

private:
  std::string folder_;
  std::mutex mutex_; ///< of what follows
  /// Names of files, by the hash of what is in them.
  std::map<std::string, std::vector<std::string>> modules_;
};

} // namespace kiln::cudart
