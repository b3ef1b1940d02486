// console: commands from a terminal or from a file, answered one by one.
#pragma once

#include <kiln/base/error.h>
#include <kiln/debug/debugger.h>

#include <string>

namespace kiln::cli {

/// Read commands from stdin until `quit` or its end. Ctrl-C pauses what runs.
ExitStatus run_console(Debugger &debugger);

/// The commands of a file, or of stdin where it is "-": a line of JSON for
/// each.
ExitStatus run_batch(Debugger &debugger, const std::string &path);

} // namespace kiln::cli
