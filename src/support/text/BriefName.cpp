// BriefName: cut lists of arguments at a comma.
#include "support/text/BriefName.h"

#include <string_view>
#include <vector>

namespace kiln {

static constexpr std::size_t kMostCharacters = 60;

/// Where the list that opens at `at` closes; npos: nowhere.
static std::size_t closeOf(std::string_view name, std::size_t at) {
  int depth = 0;
  for (std::size_t i = at; i < name.size(); ++i) {
    bool isArrow = i > 0 && name[i] == '>' && name[i - 1] == '-';
    if (name[i] == '<' || name[i] == '(')
      ++depth;
    else if ((name[i] == '>' && !isArrow) || name[i] == ')')
      if (--depth == 0)
        return i;
  }
  return std::string_view::npos;
}

/// The arguments of a list, with their commas.
static std::vector<std::string_view> argumentsOf(std::string_view list) {
  std::vector<std::string_view> arguments;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    depth += list[i] == '<' || list[i] == '(';
    depth -= list[i] == '>' || list[i] == ')';
    if (list[i] != ',' || depth != 0)
      continue;
    arguments.push_back(list.substr(begin, i + 1 - begin));
    begin = i + 1;
  }
  arguments.push_back(list.substr(begin));
  return arguments;
}

static std::string brief(std::string_view name, std::size_t most);

/// What of a list fits; lists in it get half of that.
static std::string briefList(std::string_view list, std::size_t most) {
  if (list.size() <= most)
    return std::string(list);
  std::string kept;
  for (std::string_view argument : argumentsOf(list)) {
    std::string text = brief(argument, most / 2);
    if (kept.size() + text.size() > most)
      return kept.empty() ? "..." : kept + " ...";
    kept += text;
  }
  return kept;
}

static std::string brief(std::string_view name, std::size_t most) {
  std::string text;
  for (std::size_t at = 0; at < name.size();) {
    bool opens = name[at] == '<' || name[at] == '(';
    // An operator is no list.
    bool isOperator = opens && text.ends_with("operator");
    std::size_t close =
        opens && !isOperator ? closeOf(name, at) : std::string_view::npos;
    if (close == std::string_view::npos) {
      text += name[at++];
      continue;
    }
    text += name[at];
    text += briefList(name.substr(at + 1, close - at - 1), most);
    text += name[close];
    at = close + 1;
  }
  return text;
}

std::string briefName(const std::string &name) {
  return brief(name, kMostCharacters);
}

} // namespace kiln
