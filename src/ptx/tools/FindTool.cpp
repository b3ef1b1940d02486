// FindTool: where the toolkit's programs are.
#include "ptx/tools/FindTool.h"

#include "support/Knobs.h"

#include <algorithm>
#include <filesystem>

#include <unistd.h>

namespace fs = std::filesystem;

namespace kiln {

bool isExecutableFile(const std::string &path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && access(path.c_str(), X_OK) == 0;
}

/// Search a list of folders separated by colons. An empty one, which a shell
/// reads as the current folder, is left out: what is run must not depend on
/// where.
static std::optional<std::string> findInFolders(std::string_view folders,
                                                std::string_view name) {
  while (!folders.empty()) {
    std::string_view folder = folders.substr(0, folders.find(':'));
    folders.remove_prefix(std::min(folder.size() + 1, folders.size()));
    std::string path = (fs::path(folder) / name).string();
    if (!folder.empty() && isExecutableFile(path))
      return path;
  }
  return std::nullopt;
}

std::optional<std::string> findToolkitProgram(std::string_view name) {
  if (std::optional<std::string> home = value(Knob::cudaHome)) {
    std::string path = (fs::path(*home) / "bin" / name).string();
    if (isExecutableFile(path))
      return path;
  }
  return findInFolders(value(Knob::path).value_or(""), name);
}

std::optional<std::string> findBesidePtxas(std::string_view name,
                                           const std::string &ptxas) {
  std::string beside =
      std::filesystem::path(ptxas).replace_filename(name).string();
  if (!ptxas.empty() && isExecutableFile(beside))
    return beside;
  return findToolkitProgram(name);
}

} // namespace kiln
