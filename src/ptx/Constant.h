// Constant: the constant expressions of PTX.
//
// Integers have 64 bits and are signed unless written with a U or too large for
// a signed one, as the section "Integer Constant Expression Evaluation" of the
// PTX manual says. A real written as 0f keeps its 32 bits as they are.
#pragma once

#include "ptx/Lexer.h"

namespace kiln::ptx {

struct Constant {
  bool isReal = false;
  bool isSingle = false;   ///< a real of 32 bits
  bool isUnsigned = false; ///< an integer
  std::uint64_t bits = 0;

  double real() const; ///< the value, of whichever kind
};

/// Does a constant begin here? Not a name, which could be a symbol.
bool isConstantNext(const TokenStream &stream);

/// Parse an expression with all operators.
Constant parseConstant(TokenStream &stream);

/// Parse an expression that must be an integer.
std::int64_t parseIntegerConstant(TokenStream &stream);

/// Take `+ n` and `- n` as often as they come, as in [%rd1+-4]: their sum.
std::int64_t parseOffset(TokenStream &stream);

} // namespace kiln::ptx
