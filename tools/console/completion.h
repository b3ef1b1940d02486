// completion: what a shell completes, from what the commands declare.
#pragma once

#include <string>

namespace CLI {
class App;
} // namespace CLI

namespace kiln::cli {

/// A script for bash, zsh or fish. Throws UserError for another shell.
std::string completion_script(CLI::App &app, const std::string &shell);

} // namespace kiln::cli
