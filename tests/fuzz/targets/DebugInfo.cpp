// debug_info: .file, .loc, inlined_at, sections and mangled names: what
// findings and reports make of them.
#include "fuzz/Launch.h"
#include "fuzz/Target.h"
#include "ptx/SourceLines.h"
#include "support/text/BriefName.h"
#include "support/text/Demangle.h"
#include "support/text/SourceText.h"

#include <algorithm>

namespace kiln::fuzz {

/// A source line that is told has been in the text.
static void askLines(const std::string &text) {
  SourceLines lines(text);
  auto count = std::count(text.begin(), text.end(), '\n');
  for (int line = 0; line < std::min<std::ptrdiff_t>(count, 300) + 2; ++line)
    lines.at(line);
  for (const std::string &name : entryNames(text)) {
    lines.firstIn(name);
    std::string shown = demangle(name);
    if (shown.size() > kDemangledLimitBytes + name.size() + 100)
      throw Misbehaviour{"a name of " + std::to_string(name.size()) +
                         " bytes became " + std::to_string(shown.size())};
    briefName(shown);
  }
  namedSources(text);
}

void runDebugInfo(std::string_view input) {
  std::string text(input);
  askLines(text);
  runInput(text, Launch::ofText(text));
}

} // namespace kiln::fuzz
