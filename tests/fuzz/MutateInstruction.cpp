// MutateInstruction: change what one instruction says.
#include "fuzz/Mutator.h"

#include <fmt/format.h>

namespace kiln::fuzz {

using Kind = Statement::Kind;

static Token glued(std::string text) { return {std::move(text), true}; }

template <typename List> static void eraseAt(List &list, std::size_t at) {
  if (at < list.size())
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(at));
}

template <typename List, typename T>
static void insertAt(List &list, std::size_t at, const T &value) {
  list.insert(list.begin() + static_cast<std::ptrdiff_t>(at), value);
}

/// [base + number] and the forms of tensor copies.
Tokens Mutator::addressOperand(int depth) {
  Tokens tokens = {{"["}};
  for (Token &token : anyOperand(depth + 1))
    tokens.push_back(std::move(token));
  if (dice_.oneIn(2))
    tokens.push_back({fmt::format("+{}", dice_.integer())});
  if (dice_.oneIn(6)) {
    tokens.push_back({","});
    for (Token &token : groupOperand(depth + 1))
      tokens.push_back(std::move(token));
  }
  tokens.push_back({"]"});
  return tokens;
}

/// {a, b, c}, or (a, b) as a call has it.
Tokens Mutator::groupOperand(int depth) {
  bool isList = dice_.oneIn(6);
  Tokens tokens = {{isList ? "(" : "{"}};
  for (std::size_t count = dice_.below(9), i = 0; i < count; ++i) {
    if (i > 0)
      tokens.push_back({","});
    for (Token &token : anyOperand(depth + 1))
      tokens.push_back(std::move(token));
  }
  tokens.push_back({isList ? ")" : "}"});
  return tokens;
}

Tokens Mutator::anyOperand(int depth) {
  static constexpr const char *kSpecials[] = {
      "%tid.x",       "%ntid.y",  "%ctaid.z",         "%laneid",
      "%clock64",     "%smid",    "WARP_SZ",          "%cluster_ctarank",
      "%lanemask_lt", "%envreg3", "%total_smem_size", "%tid"};
  static constexpr const char *kSelectors[] = {".b0", ".b3", ".h1", ".x", ".w"};
  switch (dice_.below(depth > 1 ? 11 : 17)) {
  default:
    return {{registerName()}};
  case 3:
    return {{dice_.integer()}};
  case 4:
    return {{dice_.real()}};
  case 5:
    return {{labelName()}};
  case 6:
    return {{symbolName()}};
  case 7:
    return {{dice_.any(kSpecials)}};
  case 8:
    return {{"_"}};
  case 9:
    return {{dice_.oneIn(2) ? "!" : "-"}, glued(registerName())};
  case 10:
    return dice_.oneIn(2)
               ? Tokens{{registerName()}, glued("|"), glued(registerName())}
               : Tokens{{registerName()}, glued(dice_.any(kSelectors))};
  case 11:
  case 12:
    return addressOperand(depth);
  case 13:
    return groupOperand(depth);
  case 14:
  case 15:
  case 16: {
    const Instruction &donor = dice_.any(pieces_.instructions);
    return donor.operands.empty() ? Tokens{{"0"}} : dice_.any(donor.operands);
  }
  }
}

/// Delete, add, swap or replace operands.
void Mutator::changeOperands(Instruction &instruction) {
  std::vector<Tokens> &operands = instruction.operands;
  std::size_t at = dice_.below(operands.size());
  switch (operands.empty() ? 1 : dice_.below(8)) {
  case 0:
    return eraseAt(operands, at);
  case 1:
    return insertAt(operands, at, anyOperand());
  case 2:
    return insertAt(operands, at, Tokens(operands[at]));
  case 3:
    return std::swap(operands[at], operands[dice_.below(operands.size())]);
  case 4: {
    // One of the same program, so that its names are known.
    std::size_t other = find(Kind::instruction);
    auto theirs = takeApart(statements_[other]).operands;
    if (!theirs.empty())
      operands[at] = dice_.any(theirs);
    return;
  }
  default:
    operands[at] = anyOperand();
  }
}

/// Change a piece of a vector or an address.
void Mutator::changeOperandInside(Instruction &instruction) {
  if (instruction.operands.empty())
    return;
  Tokens &tokens =
      instruction.operands[dice_.below(instruction.operands.size())];
  if (tokens.size() < 3)
    return changeOperands(instruction);
  // Keep the brackets.
  std::size_t at = 1 + dice_.below(tokens.size() - 2);
  switch (dice_.below(6)) {
  case 0:
    return eraseAt(tokens, at);
  case 1:
    tokens.insert(tokens.end() - 1, {{","}, {registerName()}});
    return;
  case 2:
    tokens.insert(tokens.end() - 1, {fmt::format("+{}", dice_.integer())});
    return;
  case 3:
    if (tokens.size() > 4) {
      eraseAt(tokens, tokens.size() - 2);
      eraseAt(tokens, tokens.size() - 2);
    }
    return;
  default:
    tokens[at] = {tokens[at].kind == ptx::Token::Kind::integer
                      ? dice_.integer()
                      : registerName()};
  }
}

void Mutator::changeModifiers(Instruction &instruction) {
  std::vector<std::string> &modifiers = instruction.modifiers;
  std::size_t at = dice_.below(modifiers.size());
  switch (modifiers.empty() ? 1 : dice_.below(6)) {
  case 0:
    return eraseAt(modifiers, at);
  case 1:
    return insertAt(modifiers, at, dice_.any(pieces_.modifiers));
  case 2:
    return std::swap(modifiers[at], modifiers[dice_.below(modifiers.size())]);
  case 3: {
    // Another form of the same opcode.
    auto forms = pieces_.modifiersOf.find(instruction.opcode);
    if (forms != pieces_.modifiersOf.end())
      modifiers = dice_.any(forms->second);
    return;
  }
  default:
    modifiers[at] = dice_.any(pieces_.modifiers);
  }
}

void Mutator::changeGuard(Instruction &instruction) {
  if (!instruction.guard.empty() && dice_.oneIn(2)) {
    instruction.guard.clear();
    return;
  }
  instruction.guard = {{"@"}};
  if (dice_.oneIn(2))
    instruction.guard.push_back(glued("!"));
  instruction.guard.push_back(glued(predicateName()));
}

/// Another opcode, or another instruction's with its modifiers.
void Mutator::changeOpcode(Instruction &instruction) {
  if (dice_.oneIn(2)) {
    instruction.opcode = dice_.any(pieces_.opcodes);
    return;
  }
  const Instruction &donor = dice_.any(pieces_.instructions);
  instruction.opcode = donor.opcode;
  instruction.modifiers = donor.modifiers;
}

void Mutator::changeInstruction() {
  std::size_t at = findPlace();
  if (at == statements_.size())
    return changeToken();
  Instruction instruction = takeApart(statements_[at]);
  switch (dice_.below(12)) {
  default:
    changeOperands(instruction);
    break;
  case 0:
  case 1:
  case 2:
    changeOperandInside(instruction);
    break;
  case 3:
  case 4:
  case 5:
    changeModifiers(instruction);
    break;
  case 6:
    changeGuard(instruction);
    break;
  case 7:
    changeOpcode(instruction);
    break;
  }
  statements_[at] = putTogether(instruction);
}

/// A number anywhere: in an operand, a size, an alignment, an initialiser.
void Mutator::changeLiteral() {
  std::size_t count = 0;
  Token *chosen = nullptr;
  for (Statement &statement : statements_)
    for (Token &token : statement.tokens)
      if ((token.kind == ptx::Token::Kind::integer ||
           token.kind == ptx::Token::Kind::real) &&
          dice_.oneIn(++count))
        chosen = &token;
  if (chosen)
    chosen->text = chosen->kind == ptx::Token::Kind::real && !dice_.oneIn(4)
                       ? dice_.real()
                       : dice_.integer();
}

} // namespace kiln::fuzz
