// Places: lines and functions of a module.
#include "sim/debug/Places.h"
#include "kiln/base/text.h"
#include "support/Error.h"
#include "support/text/Demangle.h"

#include <algorithm>
#include <charconv>
#include <fmt/ranges.h>
#include <set>

namespace kiln::sim {

Places::Places(const ptx::Module &module, std::string path)
    : module_(module), path_(std::move(path)), findings_(module, config_, {}) {}

const ptx::Function &
Places::functionOf(const ptx::Instruction &instruction) const {
  for (const ptx::Function &function : module_.functions)
    if (!function.body.empty() && &instruction >= &function.body.front() &&
        &instruction <= &function.body.back())
      return function;
  internalError("an instruction is in no function of its module");
}

std::vector<Finding::Frame>
Places::framesOf(const ptx::Instruction &instruction) const {
  std::vector<Finding::Frame> frames = findings_.stackOf(instruction);
  if (frames.empty())
    frames.push_back({quote(demangle(functionOf(instruction).name)),
                      findings_.sourceLine(instruction)});
  for (Finding::Frame &frame : frames)
    frame.where.file = shownFile(frame.where.file);
  return frames;
}

LineKey Places::keyOf(const ptx::Instruction &instruction) const {
  const ptx::SourceRef &source = instruction.source;
  if (source.line <= 0)
    return source.file ? LineKey{-1, 0, 0} : LineKey{0, instruction.line, 0};
  LineKey key{source.file, source.line, 0};
  const ptx::Function &function = functionOf(instruction);
  for (int inlined = source.inlined; inlined >= 0; ++key.depth)
    inlined = function.inlined[static_cast<std::size_t>(inlined)].at.inlined;
  return key;
}

std::vector<std::string> Places::files() const {
  std::set<std::string> names;
  for (const ptx::Function &function : module_.functions)
    for (const ptx::Instruction &one : function.body)
      if (auto file = module_.files.find(one.source.file);
          one.source.line > 0 && file != module_.files.end())
        names.insert(file->second);
  return {names.begin(), names.end()};
}

/// Whether what somebody calls a file is the one of that path.
static bool isFile(const std::string &path, std::string_view name) {
  return path == name ||
         (path.size() > name.size() && path.ends_with(name) &&
          path[path.size() - name.size() - 1] == '/') ||
         (name.size() > path.size() && name.ends_with(path) &&
          name[name.size() - path.size() - 1] == '/');
}

std::vector<const ptx::Instruction *> Places::findPtxLine(int line) const {
  // A line without an instruction means the next one, as in a source.
  int best = 0;
  for (const ptx::Function &function : module_.functions)
    for (const ptx::Instruction &one : function.body)
      if (one.line >= line && (!best || one.line < best))
        best = one.line;
  std::vector<const ptx::Instruction *> found;
  for (const ptx::Function &function : module_.functions)
    for (const ptx::Instruction &one : function.body)
      if (one.line == best)
        found.push_back(&one);
  if (found.empty())
    userError("{}:{} is behind the last instruction", path_, line);
  return found;
}

std::vector<const ptx::Instruction *>
Places::findLine(std::string_view file, int line,
                 std::string_view place) const {
  if (file == "ptx" || file == "PTX" || isFile(path_, file))
    return findPtxLine(line);
  std::set<int> ids;
  for (const auto &[id, path] : module_.files)
    if (isFile(path, file))
      ids.insert(id);
  if (ids.empty())
    userError("'{}': the PTX names no file '{}'; it names {}", place, file,
              files().empty() ? "none, so that lines are those of the PTX: "
                                "ptx:LINE"
                              : fmt::format("{}", fmt::join(files(), ", ")));
  // Where the line has no instruction, the next one that has.
  int best = 0;
  for (const ptx::Function &function : module_.functions)
    for (const ptx::Instruction &one : function.body)
      if (int here = one.source.line;
          ids.count(one.source.file) && here >= line && (!best || here < best))
        best = here;
  if (!best)
    userError("'{}': no instruction comes from line {} of {} or one behind it",
              place, line, file);
  std::vector<const ptx::Instruction *> found;
  for (const ptx::Function &function : module_.functions) {
    bool wasThere = false;
    for (const ptx::Instruction &one : function.body) {
      bool isThere = ids.count(one.source.file) && one.source.line == best;
      if (isThere && !wasThere)
        found.push_back(&one);
      wasThere = isThere;
    }
  }
  return found;
}

std::vector<const ptx::Instruction *>
Places::findFunction(std::string_view name) const {
  std::vector<const ptx::Instruction *> found;
  std::set<std::string> names;
  for (const ptx::Function &function : module_.functions) {
    if (function.body.empty())
      continue;
    std::string shown = demangle(function.name);
    names.insert(quote(shown, 100));
    if (function.name == name || shown == name ||
        shown.substr(0, shown.find_first_of("<(")) == name)
      found.push_back(&function.body.front());
    // Where it was inlined: the first instruction of each copy.
    int last = -1;
    for (const ptx::Instruction &one : function.body) {
      int inlined = one.source.inlined;
      if (inlined >= 0 && inlined != last)
        if (auto frames = findings_.stackOf(one);
            !frames.empty() &&
            frames.front().function.substr(
                0, frames.front().function.find_first_of("<(")) == name)
          found.push_back(&one);
      last = inlined;
    }
  }
  if (!found.empty())
    return found;
  std::size_t more = names.size() > 20 ? names.size() - 20 : 0;
  while (names.size() > 20)
    names.erase(std::prev(names.end()));
  userError("'{}' is no function of the PTX, FILE:LINE or ptx:LINE; its "
            "functions are {}{}",
            name, fmt::join(names, ", "),
            more ? fmt::format(" and {} more", more) : "");
}

std::vector<const ptx::Instruction *>
Places::find(std::string_view place) const {
  std::size_t colon = place.rfind(':');
  int line = 0;
  if (colon != std::string_view::npos) {
    const char *end = place.data() + place.size();
    auto read = std::from_chars(place.data() + colon + 1, end, line);
    if (read.ec == std::errc() && read.ptr == end && line > 0)
      return findLine(place.substr(0, colon), line, place);
  }
  return findFunction(place);
}

} // namespace kiln::sim
