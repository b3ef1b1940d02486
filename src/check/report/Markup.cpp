// Markup: five characters that mean something, and those that must not be.
#include "check/report/Markup.h"
#include "kiln/base/text.h"

namespace kiln {

std::string escaped(std::string_view text) {
  std::string result;
  for (char c : printable(text))
    switch (c) {
    case '&':
      result += "&amp;";
      break;
    case '<':
      result += "&lt;";
      break;
    case '>':
      result += "&gt;";
      break;
    case '"':
      result += "&quot;";
      break;
    case '\'':
      result += "&#39;";
      break;
    default:
      result += c;
    }
  return result;
}

} // namespace kiln
