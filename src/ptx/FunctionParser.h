// FunctionParser: the body of a function, from brace to brace.
//
// Registers and variables must be declared before they are used and are
// resolved at once. Labels and functions may come later: an operand that names
// one is left open, and closed when the function's labels are known, or when
// the whole module is.
#pragma once

#include "ptx/Ast.h"
#include "ptx/Lexer.h"
#include "ptx/Scopes.h"

namespace kiln::ptx {

/// A name that is no label, register or variable of its function: it must be
/// a variable or a function of the module.
struct OpenName {
  std::string name;
  int line;
};

class FunctionParser {
public:
  FunctionParser(TokenStream &stream, Function &function,
                 Scopes::IsTaken isTaken);

  /// Parse `{ ... }`. Returns the names that the module must declare, if only
  /// further down.
  std::vector<OpenName> parse();

private:
  /// An instruction with names to look up when all labels are known.
  struct Pending {
    std::size_t instruction;
    int scope;
  };
  struct PendingTable {
    std::string name;
    std::vector<Token> labels;
    int scope;
  };

  TokenStream &stream_;
  Function &function_;
  Scopes scopes_;
  SourceRef source_;
  /// What stood last at a file, a line and a column: inlined_at names it so.
  std::map<std::array<int, 3>, SourceRef> places_;
  bool hasOpenName_ = false;
  std::vector<Pending> pending_;
  std::vector<PendingTable> pendingTables_;
  std::vector<OpenName> open_;

  void declareParameters(const std::vector<Variable> &parameters);
  void parseStatement();
  void parseDirective();
  void parseLoc();
  /// `, function_name ..., inlined_at ...`; its index in Function::inlined.
  int parseInlined();
  void parseRegisters();
  void parseVariables(StateSpace space);
  void parseLabel();
  void parseCallPrototype();
  std::vector<Token> parseNames(std::string_view ofWhat);

  void parseInstruction();
  void parsePredicate(Instruction &instruction);
  Operand parseOperand(bool isCall);
  Operand parseNamed();
  Operand parseVectorRegister(int first, int width);
  Operand parseAddress();
  Operand parseElements(Operand::Kind kind, std::string_view close);
  Operand parseConstantOperand();
  int expectRegister();

  void resolveTables();
  [[noreturn]] void failUndefinedLabel(int line, std::string_view name) const;
  void resolve(const Instruction &instruction, Operand &operand, int scope);
};

} // namespace kiln::ptx
