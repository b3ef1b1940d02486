// SourceText: read each file once.
#include "support/text/SourceText.h"
#include "kiln/base/error.h"
#include "kiln/base/file.h"
#include "kiln/base/text.h"

#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <sstream>

namespace kiln {

bool isSource(std::string_view path) {
  static const std::set<std::string> kKinds = {
      ".c",   ".cc",  ".cpp", ".cu",   ".cuh", ".cxx", ".h",
      ".hpp", ".inc", ".inl", ".mlir", ".ptx", ".pyx", ".py"};
  return kKinds.contains(std::filesystem::path(path).extension().string());
}

std::vector<std::string> namedSources(std::string_view ptx) {
  constexpr std::string_view kDirective = ".file";
  std::set<std::string> names;
  for (std::size_t at = ptx.find(kDirective); at != std::string_view::npos;
       at = ptx.find(kDirective, at + 1)) {
    std::string_view line = ptx.substr(at, ptx.find('\n', at) - at);
    std::size_t open = line.find('"');
    if (open == std::string_view::npos)
      continue;
    std::string_view name = line.substr(open + 1);
    name = name.substr(0, name.find('"'));
    if (isSource(name))
      names.emplace(name);
  }
  return {names.begin(), names.end()};
}

const std::vector<std::string> &sourceLines(const std::string &path) {
  constexpr std::uint64_t kMostBytes = 16 << 20;
  static std::mutex mutex;
  // Findings of one kernel are of the same few files.
  static std::map<std::string, std::vector<std::string>> texts;
  std::lock_guard lock(mutex);
  auto [known, isNew] = texts.try_emplace(path);
  if (!isNew || !isSource(path))
    return known->second;
  try {
    std::istringstream text(read_file(path, kMostBytes));
    for (std::string line; std::getline(text, line);)
      known->second.push_back(printable(line));
  } catch (const Error &) {
    // There is nothing to show.
  }
  return known->second;
}

} // namespace kiln
