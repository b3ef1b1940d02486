// run_command: `kiln run`, for commands that do the same with other options.
#pragma once

#include "options/check_flags.h"

#include <kiln/base/error.h>

#include <string>
#include <vector>

namespace kiln::cli {

/// Run a program and its arguments on the simulator, with those options.
ExitStatus run_checked(std::vector<std::string> program,
                       const CheckFlags &check);

} // namespace kiln::cli
