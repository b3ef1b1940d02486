// Statements: cut text apart, and write it again.
#include "fuzz/Statements.h"

#include <algorithm>
#include <array>

namespace kiln::fuzz {

using Kind = Statement::Kind;

bool Statement::has(std::string_view text) const {
  return std::any_of(tokens.begin(), tokens.end(),
                     [&](const Token &token) { return token.text == text; });
}

static bool contains(const auto &list, std::string_view text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

/// Directives that end with their line.
static bool isLineDirective(const Statement &statement) {
  static constexpr std::array<std::string_view, 5> kNames = {
      ".version", ".target", ".address_size", ".file", ".loc"};
  return !statement.tokens.empty() &&
         contains(kNames, statement.tokens[0].text);
}

static Kind kindOf(const Statement &statement) {
  static constexpr std::array<std::string_view, 8> kVariables = {
      ".global", ".const",   ".shared", ".local",
      ".param",  ".visible", ".extern", ".weak"};
  const Token &first = statement.tokens.front();
  if (first.text == "{" || first.text == "}")
    return Kind::brace;
  if (statement.has(".entry") || statement.has(".func"))
    return Kind::head;
  if (first.text == ".reg")
    return Kind::registers;
  if (contains(kVariables, first.text))
    return Kind::variable;
  if (statement.tokens.back().text == ":")
    return Kind::label;
  bool isInstruction =
      first.text == "@" || first.kind == ptx::Token::Kind::name;
  return isInstruction ? Kind::instruction : Kind::directive;
}

namespace {
/// Takes one token after the other and finds where statements end.
class Cutter {
public:
  void take(const ptx::Token &token) {
    if (isLineDirective(current_) && token.line != line_)
      end();
    bool isOpening = token.is("{");
    if (isOpening && depth_ == 0 && !isInsideBraces())
      end();
    bool isGlued =
        end_ && end_ == token.text.data() && !current_.tokens.empty();
    current_.tokens.push_back({std::string(token.text), isGlued, token.kind});
    end_ = token.text.data() + token.text.size();
    line_ = token.line;
    if (current_.is("{") || current_.is("}"))
      return end();
    depth_ += isOpening ? 1 : token.is("}") ? -1 : 0;
    bool isLabel = token.is(":") && current_.tokens.size() == 2;
    if (depth_ <= 0 && (token.is(";") || isLabel))
      end();
  }
  void end() {
    if (!current_.tokens.empty()) {
      current_.kind = kindOf(current_);
      statements.push_back(std::move(current_));
    }
    current_ = {};
    depth_ = 0;
  }

  Statements statements;

private:
  /// A brace here begins a vector or the values of a variable, not a scope.
  bool isInsideBraces() const {
    if (current_.tokens.empty())
      return false;
    return current_.has("=") || kindOf(current_) == Kind::instruction;
  }

  Statement current_;
  const char *end_ = nullptr; ///< of the token before
  int line_ = 0;
  int depth_ = 0;
};
} // namespace

Statements readStatements(std::string_view text) {
  ptx::TokenStream stream(text, "PTX");
  Cutter cutter;
  while (stream.peek().kind != ptx::Token::Kind::end)
    cutter.take(stream.next());
  cutter.end();
  return std::move(cutter.statements);
}

std::string writeStatements(const Statements &statements) {
  std::string text;
  for (const Statement &statement : statements) {
    for (std::size_t i = 0; i < statement.tokens.size(); ++i) {
      if (i > 0 && !statement.tokens[i].isGlued)
        text += ' ';
      text += statement.tokens[i].text;
    }
    text += '\n';
  }
  return text;
}

Instruction takeApart(const Statement &statement) {
  Instruction parts;
  const Tokens &tokens = statement.tokens;
  std::size_t at = 0;
  if (tokens[0].text == "@") {
    at = tokens.size() > 1 && tokens[1].text == "!" ? 3 : 2;
    at = std::min(at, tokens.size() - 1);
    parts.guard.assign(tokens.begin(),
                       tokens.begin() + static_cast<std::ptrdiff_t>(at));
  }
  parts.opcode = tokens[at++].text;
  while (at < tokens.size() && tokens[at].kind == ptx::Token::Kind::dotWord)
    parts.modifiers.push_back(tokens[at++].text);
  int depth = 0;
  bool isNew = true;
  for (; at < tokens.size() && tokens[at].text != ";"; ++at) {
    const std::string &text = tokens[at].text;
    depth += text == "{" || text == "[" || text == "(";
    depth -= text == "}" || text == "]" || text == ")";
    if (text == "," && depth == 0) {
      isNew = true;
      continue;
    }
    if (isNew)
      parts.operands.emplace_back();
    isNew = false;
    parts.operands.back().push_back(tokens[at]);
  }
  return parts;
}

Statement putTogether(const Instruction &instruction) {
  Statement statement;
  statement.kind = Kind::instruction;
  Tokens &tokens = statement.tokens;
  tokens = instruction.guard;
  tokens.push_back({instruction.opcode});
  for (const std::string &modifier : instruction.modifiers)
    tokens.push_back({modifier, true, ptx::Token::Kind::dotWord});
  for (std::size_t i = 0; i < instruction.operands.size(); ++i) {
    if (i > 0)
      tokens.push_back({",", true, ptx::Token::Kind::punctuation});
    std::size_t first = tokens.size();
    tokens.insert(tokens.end(), instruction.operands[i].begin(),
                  instruction.operands[i].end());
    if (first < tokens.size())
      tokens[first].isGlued = false;
  }
  tokens.push_back({";", true, ptx::Token::Kind::punctuation});
  return statement;
}

std::size_t endOfFunction(const Statements &statements, std::size_t head) {
  std::size_t at = head + 1;
  int depth = 0;
  if (at >= statements.size() || !statements[at].is("{"))
    return at; // a declaration
  for (; at < statements.size(); ++at) {
    depth += statements[at].is("{") ? 1 : statements[at].is("}") ? -1 : 0;
    if (depth == 0)
      return at + 1;
  }
  return at;
}

} // namespace kiln::fuzz
