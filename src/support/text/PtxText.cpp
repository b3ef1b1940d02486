// PtxText: PTX with comments and strings blanked out.
#include "support/text/PtxText.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace kiln {

/// Where the comment or string that starts at `begin` ends, one past its last
/// character; `begin` itself where none starts there. One that is never closed
/// goes to the end, a string at most to the end of its line.
static std::size_t skipNonCode(std::string_view ptx, std::size_t begin) {
  std::string_view rest = ptx.substr(begin);
  if (rest.starts_with("//"))
    return std::min(ptx.find('\n', begin), ptx.size());
  if (rest.starts_with("/*")) {
    std::size_t end = ptx.find("*/", begin + 2);
    return end == std::string_view::npos ? ptx.size() : end + 2;
  }
  if (rest.starts_with('"')) {
    std::size_t end = ptx.find_first_of("\"\n", begin + 1);
    if (end == std::string_view::npos)
      return ptx.size();
    return ptx[end] == '"' ? end + 1 : end;
  }
  return begin;
}

std::string blankCommentsAndStrings(std::string_view ptx) {
  std::string code(ptx);
  std::size_t at = 0;
  while ((at = ptx.find_first_of("/\"", at)) != std::string_view::npos) {
    std::size_t end = skipNonCode(ptx, at);
    std::replace_if(
        code.begin() + at, code.begin() + end,
        [](char character) { return character != '\n'; }, ' ');
    at = std::max(end, at + 1);
  }
  return code;
}

bool isNameCharacter(char character) {
  return std::isalnum(static_cast<unsigned char>(character)) ||
         character == '_' || character == '$' || character == '%';
}

std::size_t findWord(std::string_view text, std::string_view word,
                     std::size_t from) {
  for (std::size_t at = text.find(word, from); at != std::string_view::npos;
       at = text.find(word, at + 1)) {
    std::size_t end = at + word.size();
    bool startsWell =
        at == 0 || word.front() == '.' || !isNameCharacter(text[at - 1]);
    if (startsWell && (end == text.size() || !isNameCharacter(text[end])))
      return at;
  }
  return std::string_view::npos;
}

std::optional<int> takeNumber(std::string_view &text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  int number = 0;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc())
    return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

} // namespace kiln
