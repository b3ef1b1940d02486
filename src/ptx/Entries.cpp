// Entries: the functions of a PTX module and where each stands in the text.
#include "ptx/Entries.h"

#include "support/PtxText.h"

#include <algorithm>
#include <cctype>

namespace kiln {

namespace {

/// Walks blanked PTX; `at` only moves forward.
class Scanner {
public:
  explicit Scanner(std::string_view code) : code(code) {}

  /// Move to the next `.entry` or `.func` outside of braces; false: no more.
  bool toNextFunction();
  /// Read the function at `at`; its name is empty where it has no body.
  PtxFunction readFunction();

private:
  std::string_view code;
  std::size_t at = 0;

  bool isAtEnd() const { return at >= code.size(); }
  bool isAtWord(std::string_view word) const {
    return findWord(code.substr(0, at + word.size() + 1), word, at) == at;
  }
  void skipSpace() {
    while (!isAtEnd() && std::isspace(static_cast<unsigned char>(code[at])))
      ++at;
  }
  /// From an opening bracket to one past the one that closes it.
  void skipBrackets(char open, char close);
  std::string readName();
  /// Move on to the line that `at` is in.
  void countLines() {
    for (; counted < at; ++counted)
      if (code[counted] == '\n') {
        ++line;
        lineBegin = counted + 1;
      }
  }

  int line = 1;
  std::size_t lineBegin = 0, counted = 0;
};

} // namespace

void Scanner::skipBrackets(char open, char close) {
  int depth = 0;
  for (; !isAtEnd(); ++at) {
    depth += code[at] == open;
    depth -= code[at] == close;
    if (depth == 0) {
      ++at;
      return;
    }
  }
}

std::string Scanner::readName() {
  std::size_t begin = at;
  while (!isAtEnd() && isNameCharacter(code[at]))
    ++at;
  return std::string(code.substr(begin, at - begin));
}

bool Scanner::toNextFunction() {
  while (!isAtEnd()) {
    if (code[at] == '{')
      skipBrackets('{', '}');
    else if (isAtWord(".entry") || isAtWord(".func"))
      return true;
    else
      ++at;
  }
  return false;
}

PtxFunction Scanner::readFunction() {
  PtxFunction function;
  function.isEntry = isAtWord(".entry");
  countLines();
  function.begin = lineBegin;
  function.firstLine = line;

  at += function.isEntry ? std::string_view(".entry").size()
                         : std::string_view(".func").size();
  skipSpace();
  if (!isAtEnd() && code[at] == '(') {
    skipBrackets('(', ')');
    skipSpace();
  }
  std::string name = readName();

  std::size_t body = code.find_first_of("{;", at);
  at = std::min(body, code.size());
  if (isAtEnd() || code[at] == ';')
    return function;
  skipBrackets('{', '}');
  function.name = std::move(name);
  function.end = at;
  countLines();
  function.lastLine = line;
  return function;
}

std::vector<PtxFunction> findFunctions(std::string_view ptx) {
  std::string code = blankCommentsAndStrings(ptx);
  Scanner scanner(code);
  std::vector<PtxFunction> functions;
  while (scanner.toNextFunction()) {
    PtxFunction function = scanner.readFunction();
    if (!function.name.empty())
      functions.push_back(std::move(function));
  }
  return functions;
}

std::vector<std::string> entryNames(std::string_view ptx) {
  std::vector<std::string> names;
  for (const PtxFunction &function : findFunctions(ptx))
    if (function.isEntry)
      names.push_back(function.name);
  return names;
}

} // namespace kiln
