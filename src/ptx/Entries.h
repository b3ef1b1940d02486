// Entries: the functions of a PTX module and where each stands in the text.
//
// Found by looking for `.entry` and `.func` outside of braces, not by parsing:
// it must also serve for text that ptxas refuses.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kiln {

/// A function with a body. Its range runs from the line of `.entry` or `.func`
/// to the body's closing brace; lines count from 1.
struct PtxFunction {
  std::string name;
  bool isEntry = false;
  std::size_t begin = 0; ///< offset of the first character
  std::size_t end = 0;   ///< one past the last
  int firstLine = 0;
  int lastLine = 0;

  bool hasLine(int line) const { return firstLine <= line && line <= lastLine; }
};

/// Entries and device functions, in the order of the text; declarations without
/// a body are left out.
std::vector<PtxFunction> findFunctions(std::string_view ptx);

/// The names of the entries, in the order of the text.
std::vector<std::string> entryNames(std::string_view ptx);

} // namespace kiln
