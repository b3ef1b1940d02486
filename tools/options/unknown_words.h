// unknown_words: name the command or option that does not exist, and the
// nearest that does.
#pragma once

#include <CLI/CLI.hpp>

namespace kiln::cli {

/// Throws UserError where the first word is not a command of `app`, or an
/// option is not one of that command: before anything else is found fault with.
void check_words(const CLI::App &app, int argc, const char *const *argv);

} // namespace kiln::cli
