// ParseVariables: declarations of memory, with their initial bytes.
#pragma once

#include "ptx/Ast.h"
#include "ptx/Lexer.h"

namespace kiln::ptx {

/// The space that ".global" and the like name; none for other words.
StateSpace parseStateSpace(std::string_view dotWord);

/// Take ".f32" or fail.
ScalarType expectType(TokenStream &stream);

/// Skip `( ... )` after .attribute; whether it has .managed.
bool skipAttribute(TokenStream &stream);

/// What `.align 4 .b8` says before the names it declares.
struct VariableHead {
  Variable variable; ///< all but its name and its size
  int vectorLength = 1;
};

/// Parse alignment, attributes and type; the space has been taken.
VariableHead parseVariableHead(TokenStream &stream, StateSpace space);

/// Parse a name with its dimensions and its initialiser.
Variable parseDeclarator(TokenStream &stream, const VariableHead &head);

/// Parse `( .param .u64 .ptr .global .align 1 x, ... )`; a `.reg` among them
/// gets the space none.
std::vector<Variable> parseParameters(TokenStream &stream);

} // namespace kiln::ptx
