// man_pages: the manual pages of the commands, from what they declare.
#pragma once

#include <filesystem>

namespace CLI {
class App;
} // namespace CLI

namespace kiln::cli {

/// Write kiln.1, and kiln-NAME.1 for each command, into `folder`, which is made
/// where it is missing.
void write_man_pages(CLI::App &app, const std::filesystem::path &folder);

} // namespace kiln::cli
