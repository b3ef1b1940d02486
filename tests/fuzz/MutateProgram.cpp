// MutateProgram: change which statements there are, and what is declared.
#include "fuzz/Mutator.h"

#include <algorithm>
#include <fmt/format.h>

namespace kiln::fuzz {

using Kind = Statement::Kind;

static constexpr const char *kTypes[] = {
    ".pred", ".b8",  ".b16",  ".b32", ".b64", ".b128", ".u8",
    ".u16",  ".u32", ".u64",  ".s32", ".s64", ".f16",  ".f16x2",
    ".f32",  ".f64", ".bf16", ".s8",  ".s16", ".tf32"};

void Mutator::insertText(std::size_t at, const std::string &text) {
  for (Statement &statement : readStatements(text))
    insert(at++, std::move(statement));
}

/// Delete, repeat, move or swap whole instructions.
void Mutator::moveInstructions() {
  std::size_t from = find(Kind::instruction), to = find(Kind::instruction);
  if (from == statements_.size())
    return;
  Statement taken = statements_[from];
  auto place = statements_.begin() + static_cast<std::ptrdiff_t>(from);
  switch (dice_.below(4)) {
  case 0:
    statements_.erase(place);
    return;
  case 1:
    return insert(to, std::move(taken));
  case 2:
    return std::swap(statements_[from], statements_[to]);
  default:
    statements_.erase(place);
    insert(to, std::move(taken));
  }
}

/// One of another kernel with the registers of this, or one that jumps.
void Mutator::addInstruction() {
  std::size_t at = findPlace();
  if (at == statements_.size())
    return;
  switch (dice_.below(8)) {
  case 0:
    return insertText(at, fmt::format("bra {};", labelName()));
  case 1: // a loop, or a way past the rest
    return insertText(at,
                      fmt::format("@{} bra {};", predicateName(), labelName()));
  case 2:
    return insertText(at, fmt::format("call {}, ({}, {});", symbolName(),
                                      registerName(), registerName()));
  case 3: {
    static constexpr const char *kEnds[] = {"ret;", "exit;", "trap;",
                                            "bar.sync 0;", "brkpt;"};
    return insertText(at, dice_.any(kEnds));
  }
  default: {
    Instruction donor = dice_.any(pieces_.instructions);
    for (Tokens &operand : donor.operands)
      for (Token &token : operand)
        if (token.kind == ptx::Token::Kind::name)
          token.text = token.text[0] == '%' ? registerName() : symbolName();
    donor.guard.clear();
    insert(at, putTogether(donor));
  }
  }
}

/// Labels that are elsewhere, twice or not at all; scopes around anything.
void Mutator::changeLabels() {
  std::size_t at = find(Kind::label);
  std::size_t to = find(Kind::instruction);
  switch (at == statements_.size() ? 3 : dice_.below(6)) {
  case 0:
    statements_.erase(statements_.begin() + static_cast<std::ptrdiff_t>(at));
    return;
  case 1:
    return insert(to, statements_[at]);
  case 2: {
    Statement label = statements_[at];
    statements_.erase(statements_.begin() + static_cast<std::ptrdiff_t>(at));
    return insert(to, std::move(label));
  }
  case 3:
    insertText(to, "{");
    return insertText(to + 1 + dice_.below(6), "}");
  default:
    // Another label for every branch there.
    std::string name = labelName();
    for (Statement &statement : statements_)
      for (Token &token : statement.tokens)
        if (statement.kind == Kind::instruction &&
            token.text == statements_[at].tokens[0].text)
          token.text = name;
  }
}

void Mutator::changeRegisters() {
  std::size_t at = find(Kind::registers);
  if (at == statements_.size())
    return;
  Tokens &tokens = statements_[at].tokens;
  auto count = std::find_if(tokens.begin(), tokens.end(), [](const Token &one) {
    return one.kind == ptx::Token::Kind::integer;
  });
  if (dice_.oneIn(3) && count != tokens.end())
    count->text = dice_.integer();
  else if (dice_.oneIn(6))
    statements_.erase(statements_.begin() + static_cast<std::ptrdiff_t>(at));
  else if (tokens.size() > 1)
    tokens[1].text = dice_.any(kTypes);
}

/// Type, alignment, size, space and number of a variable.
void Mutator::changeVariable() {
  static constexpr const char *kSpaces[] = {".global", ".const", ".shared",
                                            ".local",  ".param", ".reg"};
  std::size_t at = find(Kind::variable);
  if (at == statements_.size() || dice_.oneIn(8)) {
    // An array of its own, and an access to it.
    std::size_t to = findPlace();
    static constexpr const char *kFresh[] = {"local", "shared", "global",
                                             "const", "param"};
    std::string space = dice_.any(kFresh);
    std::string name = registerName();
    insertText(to, fmt::format(".{} .align {} .b8 fresh[{}];", space,
                               1 << dice_.below(8), dice_.integer()));
    return insertText(to + 1,
                      dice_.oneIn(2)
                          ? fmt::format("st.{}.b32 [fresh], {};", space, name)
                          : fmt::format("ld.{}.b32 {}, [fresh];", space, name));
  }
  Tokens &tokens = statements_[at].tokens;
  switch (dice_.below(6)) {
  case 0:
    statements_.erase(statements_.begin() + static_cast<std::ptrdiff_t>(at));
    return;
  case 1:
    return insert(at, Statement(statements_[at]));
  case 2:
    tokens[0].text = dice_.any(kSpaces);
    return;
  case 3:
    for (Token &token : tokens)
      if (token.text.starts_with(".b") || token.text.starts_with(".u") ||
          token.text.starts_with(".f"))
        token.text = dice_.any(kTypes);
    return;
  case 4: {
    std::string align = fmt::format(".align {}", dice_.integer());
    tokens.insert(tokens.begin() + 1, Token{align});
    return;
  }
  default:
    for (Token &token : tokens)
      if (token.kind == ptx::Token::Kind::integer && dice_.oneIn(2))
        token.text = dice_.integer();
  }
}

/// Parameters and the directives of a function.
void Mutator::changeHead() {
  static constexpr const char *kDirectives[] = {
      ".reqntid",          ".maxntid",           ".minnctapersm",
      ".maxnreg",          ".reqnctapercluster", ".explicitcluster",
      ".noreturn",         ".maxclusterrank",    ".maxnctapersm",
      ".blocksareclusters"};
  std::size_t at = find(Kind::head);
  if (at == statements_.size())
    return;
  Tokens &tokens = statements_[at].tokens;
  auto close = std::find_if(tokens.begin(), tokens.end(),
                            [](const Token &one) { return one.text == ")"; });
  switch (dice_.below(5)) {
  case 0: {
    std::string text = dice_.any(kDirectives);
    for (std::size_t count = dice_.below(5), i = 0; i < count; ++i)
      text += fmt::format("{} {}", i > 0 ? "," : "",
                          dice_.oneIn(2) ? std::to_string(1 + dice_.below(8))
                                         : dice_.integer());
    tokens.push_back({text});
    return;
  }
  case 1:
    if (close != tokens.end())
      tokens.insert(close,
                    {fmt::format(", .param .align {} {} more[{}]",
                                 1 << dice_.below(8), dice_.any(kTypes),
                                 dice_.oneIn(2) ? "4" : dice_.integer())});
    return;
  case 2: {
    // Leave a parameter out.
    auto comma = std::find_if(tokens.begin(), close,
                              [](const Token &one) { return one.text == ","; });
    if (comma != close)
      tokens.erase(comma, close);
    return;
  }
  case 3:
    for (Token &token : tokens)
      if (token.text.starts_with(".u") || token.text.starts_with(".b"))
        if (dice_.oneIn(2))
          token.text = dice_.any(kTypes);
    return;
  default:
    for (Token &token : tokens)
      if (token.kind == ptx::Token::Kind::integer && dice_.oneIn(2))
        token.text = dice_.integer();
  }
}

/// Directives of the module, and lines of its source.
void Mutator::changeDirective() {
  static constexpr const char *kLines[] = {
      ".version 9.9",
      ".version 0.0",
      ".version 99999999999.1",
      ".target sm_90",
      ".target sm_20",
      ".target sm_100a",
      ".target sm_90a, debug, texmode_independent",
      ".target nothing",
      ".address_size 32",
      ".file 1 \"a\\033[31m.cu\"",
      ".file 1 \"a\033[31m\001.cu\"",
      ".file 4294967295 \"x.cu\"",
      ".pragma \"nounroll\";",
      ".section .debug_str { .b8 1, 2 }",
      ".alias again, probe;",
      ".extern .func nobody;",
      ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 v);",
      ".global .b8 text[8] = {37, 115, 27, 91, 37, 110};",
      ".global .b64 self = self;",
      ".const .align 8 .b64 table[3] = {1, 2, generic(table)};",
      ".extern .shared .align 16 .b8 other[];"};
  std::size_t at = find(Kind::directive);
  if (at < statements_.size() && dice_.oneIn(3)) {
    statements_.erase(statements_.begin() + static_cast<std::ptrdiff_t>(at));
    return;
  }
  if (dice_.oneIn(4))
    return insertText(find(Kind::instruction),
                      fmt::format(".loc {} {} {}", dice_.below(3),
                                  dice_.integer(), dice_.integer()));
  insertText(dice_.below(4), dice_.any(kLines));
}

/// Any token at all: away, twice, or another's.
void Mutator::changeToken() {
  if (statements_.empty())
    return;
  Tokens &tokens = statements_[dice_.below(statements_.size())].tokens;
  Tokens &others = statements_[dice_.below(statements_.size())].tokens;
  if (tokens.size() < 2 || others.empty())
    return;
  std::size_t at = dice_.below(tokens.size());
  auto place = tokens.begin() + static_cast<std::ptrdiff_t>(at);
  switch (dice_.below(3)) {
  case 0:
    tokens.erase(place);
    return;
  case 1:
    tokens.insert(place, Token(tokens[at]));
    return;
  default:
    tokens[at] = Token(dice_.any(others));
  }
}

} // namespace kiln::fuzz
