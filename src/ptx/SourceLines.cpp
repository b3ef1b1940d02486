// SourceLines: from a line of PTX to the line of the kernel's source.
#include "ptx/SourceLines.h"

#include "support/text/PtxText.h"

#include <algorithm>
#include <optional>

namespace kiln {

/// What stands between the first pair of quotes in `text`.
static std::string_view quoted(std::string_view text) {
  std::size_t open = text.find('"');
  if (open == std::string_view::npos)
    return {};
  text.remove_prefix(open + 1);
  return text.substr(0, text.find('"'));
}

SourceLines::SourceLines(std::string_view ptx)
    : functions_(findFunctions(ptx)) {
  std::string blanked = blankCommentsAndStrings(ptx);
  std::string_view code = blanked;
  int number = 0;
  for (std::size_t begin = 0; begin < code.size();) {
    ++number;
    std::size_t end = std::min(code.find('\n', begin), code.size());
    std::string_view line = code.substr(begin, end - begin);
    std::size_t directive = line.find_first_not_of(" \t");
    if (directive != std::string_view::npos &&
        findWord(line, ".file", directive) == directive) {
      std::string_view rest = line.substr(directive + 5);
      if (std::optional<int> index = takeNumber(rest))
        files_[*index] = quoted(ptx.substr(begin, end - begin));
    }
    for (std::size_t at = findWord(line, ".loc"); at != std::string_view::npos;
         at = findWord(line, ".loc", at + 1)) {
      std::string_view rest = line.substr(at + 4);
      std::optional<int> file = takeNumber(rest);
      std::optional<int> sourceLine = takeNumber(rest);
      if (file && sourceLine && *sourceLine > 0)
        locs_.push_back({number, *file, static_cast<unsigned>(*sourceLine)});
    }
    begin = end + 1;
  }
}

SourceLine SourceLines::resolve(const Loc &loc) const {
  auto file = files_.find(loc.file);
  if (file == files_.end())
    return {};
  return {file->second, loc.line};
}

SourceLine SourceLines::at(int ptxLine) const {
  auto function =
      std::find_if(functions_.begin(), functions_.end(),
                   [&](const PtxFunction &f) { return f.hasLine(ptxLine); });
  if (function == functions_.end())
    return {};
  auto after = std::find_if(locs_.begin(), locs_.end(), [&](const Loc &loc) {
    return loc.ptxLine > ptxLine;
  });
  if (after == locs_.begin())
    return {};
  const Loc &inForce = *std::prev(after);
  if (!function->hasLine(inForce.ptxLine))
    return {};
  return resolve(inForce);
}

SourceLine SourceLines::firstIn(std::string_view name) const {
  for (const PtxFunction &function : functions_) {
    if (function.name != name)
      continue;
    for (const Loc &loc : locs_)
      if (function.hasLine(loc.ptxLine))
        return resolve(loc);
  }
  return {};
}

} // namespace kiln
