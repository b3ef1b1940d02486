// FunctionParser: scopes, declarations and labels of a function's body.
#include "ptx/FunctionParser.h"

#include "ptx/ParseVariables.h"
#include "support/Error.h"
#include "support/limits/Budget.h"

namespace kiln::ptx {

FunctionParser::FunctionParser(TokenStream &stream, Function &function,
                               Scopes::IsTaken isTaken)
    : stream_(stream), function_(function),
      scopes_(stream, function, std::move(isTaken)) {}

std::vector<OpenName> FunctionParser::parse() {
  scopes_.open(function_.line);
  declareParameters(function_.results);
  declareParameters(function_.parameters);
  scopes_.open(stream_.expect("{", "before the body of a function").line);
  constexpr std::size_t kParameterScope = 1;
  while (scopes_.depth() > kParameterScope) {
    checkBudget();
    parseStatement();
  }

  resolveTables();
  for (const Pending &pending : pending_) {
    Instruction &instruction = function_.body[pending.instruction];
    for (Operand &operand : instruction.operands)
      resolve(instruction, operand, pending.scope);
  }
  return std::move(open_);
}

void FunctionParser::declareParameters(
    const std::vector<Variable> &parameters) {
  for (const Variable &parameter : parameters) {
    // A view of the name in the function's own table, which lives long enough.
    Token name{Token::Kind::name, parameter.line, parameter.name};
    if (parameter.space == StateSpace::none)
      scopes_.declareRegister(name, parameter.type);
    else
      scopes_.declareParameter(name);
  }
}

void FunctionParser::parseStatement() {
  const Token &token = stream_.peek();
  if (token.kind == Token::Kind::end)
    stream_.failExpected(fmt::format("'}}' for the scope opened in line {}",
                                     scopes_.openedAt()));
  if (token.is("{"))
    return scopes_.open(stream_.next().line);
  if (token.is("}")) {
    stream_.next();
    return scopes_.close();
  }
  if (token.is(";")) {
    stream_.next();
    return;
  }
  if (token.isDotWord())
    return parseDirective();
  if (token.isName() && stream_.peek(1).is(":"))
    return parseLabel();
  parseInstruction();
}

void FunctionParser::parseDirective() {
  StateSpace space = parseStateSpace(stream_.peek().text);
  if (space != StateSpace::none) {
    stream_.next();
    return parseVariables(space);
  }
  if (stream_.accept(".reg"))
    return parseRegisters();
  if (stream_.accept(".loc"))
    return parseLoc();
  if (!stream_.accept(".pragma"))
    stream_.failExpected("an instruction, a label, a declaration, '.loc', "
                         "'.pragma' or '}'");
  do {
    if (stream_.peek().kind != Token::Kind::string)
      stream_.failExpected("a string after .pragma");
    stream_.next();
  } while (stream_.accept(","));
  stream_.expect(";", "after the pragma");
}

void FunctionParser::parseLoc() {
  int file = stream_.expectInt("the number of a file after .loc");
  int line = stream_.expectInt("a line after .loc");
  int column = stream_.expectInt("a column after .loc");
  SourceRef source{file, line};
  if (stream_.peek().is(",") && stream_.peek(1).is("function_name"))
    source.inlined = parseInlined();
  // Line 0: the compiler has none; the nearest known line stays.
  if (line == 0)
    return;
  source_ = source;
  places_[{file, line, column}] = source;
}

int FunctionParser::parseInlined() {
  stream_.next();
  stream_.next();
  std::string name(stream_.expectName("a string of the debug section").text);
  if (stream_.accept("+"))
    name += fmt::format("+{}",
                        stream_.expectInt("an offset into the debug section"));
  stream_.expect(",", "after function_name");
  stream_.expect("inlined_at", "after function_name");
  int file = stream_.expectInt("the number of a file after inlined_at");
  int line = stream_.expectInt("a line after inlined_at");
  int column = stream_.expectInt("a column after inlined_at");
  // A place that was inlined itself has stood before with where that was.
  SourceRef at{file, line};
  if (auto known = places_.find({file, line, column}); known != places_.end())
    at = known->second;
  // Hostile text may name a place within itself; a chain has an end.
  function_.inlined.push_back({std::move(name), at});
  return static_cast<int>(function_.inlined.size()) - 1;
}

void FunctionParser::parseRegisters() {
  int width = stream_.accept(".v2") ? 2 : stream_.accept(".v4") ? 4 : 1;
  ScalarType type = expectType(stream_);
  do {
    Token name = stream_.expectName("a register");
    if (!stream_.accept("<")) {
      scopes_.declareRegister(name, type, width);
      continue;
    }
    int count = stream_.expectInt("the number of registers");
    stream_.expect(">", "after the number of registers");
    scopes_.declareRegisters(name, count, type, width);
  } while (stream_.accept(","));
  stream_.expect(";", "after the registers");
}

void FunctionParser::parseVariables(StateSpace space) {
  VariableHead head = parseVariableHead(stream_, space);
  do {
    Token name = stream_.peek();
    Variable variable = parseDeclarator(stream_, head);
    variable.name = scopes_.declareVariable(name);
    function_.locals.push_back(std::move(variable));
  } while (stream_.accept(","));
  stream_.expect(";", "after the variable");
}

void FunctionParser::parseLabel() {
  Token name = stream_.next();
  stream_.next();
  if (stream_.accept(".callprototype")) {
    scopes_.declareLabel(name, -1, scopes_.uniqueTable(name.text));
    return parseCallPrototype();
  }
  bool isBranches = stream_.accept(".branchtargets");
  if (!isBranches && !stream_.accept(".calltargets")) {
    int target = static_cast<int>(function_.body.size());
    return scopes_.declareLabel(name, target);
  }
  std::string table = scopes_.uniqueTable(name.text);
  scopes_.declareLabel(name, -1, table);
  std::vector<Token> targets =
      parseNames(isBranches ? "a label" : "a function");
  if (isBranches) {
    pendingTables_.push_back({table, std::move(targets), scopes_.current()});
    return;
  }
  for (const Token &target : targets)
    function_.callTargets[table].emplace_back(target.text);
}

/// A prototype says what a call's own operands say again: nothing to keep.
void FunctionParser::parseCallPrototype() {
  if (stream_.peek().is("("))
    parseParameters(stream_);
  stream_.expectName("a prototype ('_')");
  if (stream_.peek().is("("))
    parseParameters(stream_);
  while (stream_.peek().isDotWord()) {
    stream_.next();
    if (stream_.peek().kind == Token::Kind::integer)
      stream_.next();
  }
  stream_.expect(";", "after the prototype");
}

std::vector<Token> FunctionParser::parseNames(std::string_view ofWhat) {
  std::vector<Token> names;
  do
    names.push_back(stream_.expectName(ofWhat));
  while (stream_.accept(","));
  stream_.expect(";", "after the list of names");
  return names;
}

void FunctionParser::failUndefinedLabel(int line, std::string_view name) const {
  stream_.fail(line, fmt::format("the label '{}' is not defined where this "
                                 "scope sees it",
                                 name));
}

void FunctionParser::resolveTables() {
  for (const PendingTable &table : pendingTables_) {
    std::vector<int> &targets = function_.branchTargets[table.name];
    for (const Token &name : table.labels) {
      const Scopes::Label *label = scopes_.findLabel(table.scope, name.text);
      if (!label || label->target < 0)
        failUndefinedLabel(name.line, name.text);
      targets.push_back(label->target);
    }
  }
}

/// Close an open name: with a label, or as the name of a symbol.
void FunctionParser::resolve(const Instruction &instruction, Operand &operand,
                             int scope) {
  for (Operand &element : operand.elements)
    resolve(instruction, element, scope);
  if (operand.kind != Operand::Kind::label)
    return;
  const Scopes::Label *label = scopes_.findLabel(scope, operand.name);
  if (label && label->target >= 0) {
    operand.target = label->target;
    return;
  }
  if (instruction.opcode == "bra")
    failUndefinedLabel(instruction.line, operand.name);
  operand.kind = Operand::Kind::symbol;
  if (label)
    operand.name = label->table;
  else
    open_.push_back({operand.name, instruction.line});
}

} // namespace kiln::ptx
