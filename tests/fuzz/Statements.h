// Statements: PTX text cut into statements, and instructions into their parts.
//
// What the mutator works on: enough of the grammar to take an operand for an
// operand and a modifier for a modifier, and nothing of what they mean, so that
// wrong text can be written as easily as right text.
#pragma once

#include "ptx/Lexer.h"

#include <string>
#include <string_view>
#include <vector>

namespace kiln::fuzz {

struct Token {
  std::string text;
  bool isGlued = false; ///< nothing stands between it and the one before
  ptx::Token::Kind kind = ptx::Token::Kind::name;
};
using Tokens = std::vector<Token>;

struct Statement {
  enum class Kind : std::uint8_t {
    directive, ///< .version 8.0
    head,      ///< .visible .entry f(.param .u64 x) .maxntid 32
    brace,     ///< { or }
    registers, ///< .reg .b32 %r<9>;
    variable,  ///< .shared .align 8 .b64 full[2];
    label,     ///< done:
    instruction,
  };
  Kind kind = Kind::directive;
  Tokens tokens;

  bool is(std::string_view text) const {
    return tokens.size() == 1 && tokens[0].text == text;
  }
  bool has(std::string_view text) const;
};
using Statements = std::vector<Statement>;

/// Throws UserError where the text is not made of PTX's tokens.
Statements readStatements(std::string_view text);
std::string writeStatements(const Statements &statements);

/// An instruction taken apart.
struct Instruction {
  Tokens guard; ///< @ ! %p1; mostly empty
  std::string opcode;
  std::vector<std::string> modifiers; ///< with their dots
  std::vector<Tokens> operands;
};
Instruction takeApart(const Statement &statement);
Statement putTogether(const Instruction &instruction);

/// The index behind the function whose head is at `head`.
std::size_t endOfFunction(const Statements &statements, std::size_t head);

} // namespace kiln::fuzz
