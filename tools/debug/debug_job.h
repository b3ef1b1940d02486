// debug_job: what `kiln debug` is given, as a job: PTX with a launch file, a
// capture, or a program, one launch of which is captured first.
#pragma once

#include "options/check_flags.h"

#include <kiln/debug/debugger.h>

#include <memory>
#include <string>
#include <vector>

namespace kiln::cli {

struct DebugWords {
  std::vector<std::string> words; ///< a file, or a program and its arguments
  std::string launch;             ///< a launch file, or the number of a launch
  std::string checkpoint_memory = "1G";
  CheckFlags check;
};

/// Throws UserError where there is nothing that can be debugged. `is_quiet`: a
/// program's output goes to stderr.
std::unique_ptr<Debugger> open_debugger(const DebugWords &words, bool is_quiet);

} // namespace kiln::cli
