// AsmText: pieces of the text of inline assembly.
#pragma once

#include <fmt/format.h>

#include <string>

namespace kiln {

/// "{$1, $2, ...}": `count` operands of the assembly from `first` on.
inline std::string registerList(int first, int count) {
  std::string text = "{";
  for (int i = 0; i < count; ++i)
    text += fmt::format("{}${}", i ? ", " : "", first + i);
  return text + "}";
}

} // namespace kiln
