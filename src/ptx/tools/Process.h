// Process: run a program to its end and keep what it says.
//
// No shell stands between: arguments are passed as they are, so a path with a
// space or a quote in it is nothing special.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace kiln {

struct ProcessResult {
  int exitCode = 0;
  std::string output; ///< standard output and standard error, as they came
};

/// Run `command` (the program's path, then its arguments) with no input. Throws
/// RuntimeError where it cannot be started, is ended by a signal, or is still
/// running after `limit`; in that case it and its children are ended first.
ProcessResult runProcess(const std::vector<std::string> &command,
                         std::chrono::milliseconds limit);

} // namespace kiln
