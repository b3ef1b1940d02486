// Entries: the functions of a PTX module and where each stands in the text.
#include "ptx/Entries.h"

#include "support/text/PtxText.h"

#include <algorithm>
#include <cctype>

namespace kiln {

namespace {

/// Walks blanked PTX; `at_` only moves forward.
class Scanner {
public:
  explicit Scanner(std::string_view code) : code_(code) {}

  /// Move to the next `.entry` or `.func` outside of braces; false: no more.
  bool toNextFunction();
  /// Read the function at `at_`; its name is empty where it has no body.
  PtxFunction readFunction();

private:
  std::string_view code_;
  std::size_t at_ = 0;

  bool isAtEnd() const { return at_ >= code_.size(); }
  bool isAtWord(std::string_view word) const {
    return findWord(code_.substr(0, at_ + word.size() + 1), word, at_) == at_;
  }
  void skipSpace() {
    while (!isAtEnd() && std::isspace(static_cast<unsigned char>(code_[at_])))
      ++at_;
  }
  /// From an opening bracket to one past the one that closes it.
  void skipBrackets(char open, char close);
  std::string readName();
  /// Move on to the line that `at_` is in.
  void countLines() {
    for (; counted_ < at_; ++counted_)
      if (code_[counted_] == '\n') {
        ++line_;
        lineBegin_ = counted_ + 1;
      }
  }

  int line_ = 1;
  std::size_t lineBegin_ = 0, counted_ = 0;
};

} // namespace

void Scanner::skipBrackets(char open, char close) {
  int depth = 0;
  for (; !isAtEnd(); ++at_) {
    depth += code_[at_] == open;
    depth -= code_[at_] == close;
    if (depth == 0) {
      ++at_;
      return;
    }
  }
}

std::string Scanner::readName() {
  std::size_t begin = at_;
  while (!isAtEnd() && isNameCharacter(code_[at_]))
    ++at_;
  return std::string(code_.substr(begin, at_ - begin));
}

bool Scanner::toNextFunction() {
  while (!isAtEnd()) {
    if (code_[at_] == '{')
      skipBrackets('{', '}');
    else if (isAtWord(".entry") || isAtWord(".func"))
      return true;
    else
      ++at_;
  }
  return false;
}

PtxFunction Scanner::readFunction() {
  PtxFunction function;
  function.isEntry = isAtWord(".entry");
  countLines();
  function.begin = lineBegin_;
  function.firstLine = line_;

  at_ += function.isEntry ? std::string_view(".entry").size()
                          : std::string_view(".func").size();
  skipSpace();
  if (!isAtEnd() && code_[at_] == '(') {
    skipBrackets('(', ')');
    skipSpace();
  }
  std::string name = readName();

  std::size_t body = code_.find_first_of("{;", at_);
  at_ = std::min(body, code_.size());
  if (isAtEnd() || code_[at_] == ';')
    return function;
  skipBrackets('{', '}');
  function.name = std::move(name);
  function.end = at_;
  countLines();
  function.lastLine = line_;
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
