// Parser: a PTX module, directive by directive.
//
// Functions are handed to FunctionParser; what their operands name beyond
// labels is checked here, when the last line has been read.
#include "ptx/Ast.h"

#include "isa/Target.h"
#include "ptx/FunctionParser.h"
#include "ptx/Lexer.h"
#include "ptx/ParseVariables.h"
#include "support/Error.h"
#include "support/limits/Budget.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace kiln::ptx {

namespace {
class ModuleParser {
public:
  ModuleParser(const std::string &text, const std::string &origin)
      : stream_(text, origin) {}

  Module parse() {
    while (stream_.peek().kind != Token::Kind::end) {
      checkBudget();
      parseStatement();
    }
    checkSymbols();
    return std::move(module_);
  }

private:
  struct Linkage {
    bool isExtern = false;
    bool isVisible = false;
    bool isWeak = false;
  };

  TokenStream stream_;
  Module module_;
  std::vector<OpenName> open_;

  void parseStatement();
  void parseVersion();
  void parseTarget();
  void parseFile();
  void parseAlias();
  void parseSection();
  void skipPragma();
  Linkage parseLinkage();
  void parseVariables(StateSpace space, const Linkage &linkage);
  void addVariable(Variable variable);
  void parseFunction(bool isEntry, const Linkage &linkage);
  void parseFunctionDirectives(Function &function);
  void addFunction(Function function);
  bool isDeclared(const std::string &name) const {
    return module_.variableIndex.count(name) != 0 ||
           module_.functionIndex.count(name) != 0 ||
           module_.aliases.count(name) != 0;
  }
  void checkSymbols();
  void checkRelocations(const Variable &variable);
};
} // namespace

void ModuleParser::parseStatement() {
  if (stream_.accept(";"))
    return;
  if (stream_.accept(".version"))
    return parseVersion();
  if (stream_.accept(".target"))
    return parseTarget();
  if (stream_.accept(".file"))
    return parseFile();
  if (stream_.accept(".section"))
    return parseSection();
  if (stream_.accept(".pragma"))
    return skipPragma();
  if (stream_.accept(".alias"))
    return parseAlias();
  if (stream_.peek().is(".address_size")) {
    int line = stream_.next().line;
    module_.addressSize = stream_.expectInt("the size of an address in bits");
    if (module_.addressSize != 64)
      stream_.fail(line, fmt::format("addresses have 64 bits, not {}",
                                     module_.addressSize));
    return;
  }
  Linkage linkage = parseLinkage();
  if (stream_.accept(".entry"))
    return parseFunction(true, linkage);
  if (stream_.accept(".func"))
    return parseFunction(false, linkage);
  StateSpace space = parseStateSpace(stream_.peek().text);
  if (space == StateSpace::none || space == StateSpace::param)
    stream_.failExpected("'.entry', '.func', a variable ('.global', '.const', "
                         "'.shared') or another directive of a module");
  stream_.next();
  parseVariables(space, linkage);
}

void ModuleParser::parseVersion() {
  const Token &token = stream_.peek();
  const char *begin = token.text.data(), *end = begin + token.text.size();
  auto [dot, status] = std::from_chars(begin, end, module_.versionMajor);
  bool isVersion =
      token.kind == Token::Kind::real && status == std::errc() && *dot == '.';
  if (isVersion) {
    auto [last, minorStatus] =
        std::from_chars(dot + 1, end, module_.versionMinor);
    isVersion = minorStatus == std::errc() && last == end;
  }
  if (!isVersion)
    stream_.failExpected("a version such as 8.0");
  module_.versionLine = stream_.next().line;
}

static constexpr std::array<std::string_view, 4> kTargetOptions = {
    "texmode_unified", "texmode_independent", "debug", "map_f64_to_f32"};

/// Take one of `accepted`, or fail with all of them.
template <std::size_t N>
static std::string
expectOneOf(TokenStream &stream,
            const std::array<std::string_view, N> &accepted) {
  if (std::find(accepted.begin(), accepted.end(), stream.peek().text) ==
      accepted.end())
    stream.failExpected(fmt::format("one of {}", fmt::join(accepted, ", ")));
  return std::string(stream.next().text);
}

void ModuleParser::parseTarget() {
  module_.targetLine = stream_.peek().line;
  if (!isa::findTarget(stream_.peek().text))
    stream_.failExpected(fmt::format("one of {}", isa::targetNames()));
  module_.target = stream_.next().text;
  while (stream_.accept(","))
    module_.targetOptions.push_back(expectOneOf(stream_, kTargetOptions));
}

void ModuleParser::parseFile() {
  int number = stream_.expectInt("the number of a file");
  if (stream_.peek().kind != Token::Kind::string)
    stream_.failExpected("the name of a file in quotes");
  std::string_view name = stream_.next().text;
  module_.files[number] = name.substr(1, name.size() - 2);
  while (stream_.accept(",")) { // when it was written, how long it is
    if (stream_.peek().kind != Token::Kind::integer)
      stream_.failExpected("the file's time or size");
    stream_.next();
  }
}

void ModuleParser::parseAlias() {
  std::string name(stream_.expectName("an alias").text);
  stream_.expect(",", "after the alias");
  module_.aliases[name] = stream_.expectName("a function").text;
  stream_.expect(";", "after the alias");
}

/// Debug sections: data for a debugger, with labels of their own. Of the
/// strings the characters are kept: names of functions that were inlined.
void ModuleParser::parseSection() {
  Token name = stream_.next();
  stream_.expect("{", "after the name of a section");
  std::string *text = nullptr;
  while (!stream_.peek().is("}")) {
    if (stream_.peek().kind == Token::Kind::end)
      stream_.failExpected(
          fmt::format("'}}' for the section opened in line {}", name.line));
    Token token = stream_.next();
    if (token.isName() && stream_.peek().is(":") && name.is(".debug_str"))
      text = &module_.debugStrings[std::string(token.text)];
    unsigned character = 0;
    if (text && token.kind == Token::Kind::integer &&
        std::from_chars(token.text.data(),
                        token.text.data() + token.text.size(), character)
                .ec == std::errc() &&
        character > 0 && character < 256)
      text->push_back(static_cast<char>(character));
  }
  stream_.next();
}

void ModuleParser::skipPragma() {
  do {
    if (stream_.peek().kind != Token::Kind::string)
      stream_.failExpected("a string after .pragma");
    stream_.next();
  } while (stream_.accept(","));
  stream_.expect(";", "after the pragma");
}

ModuleParser::Linkage ModuleParser::parseLinkage() {
  Linkage linkage;
  while (true) {
    if (stream_.accept(".extern"))
      linkage.isExtern = true;
    else if (stream_.accept(".visible"))
      linkage.isVisible = true;
    else if (stream_.accept(".weak") || stream_.accept(".common"))
      linkage.isVisible = linkage.isWeak = true;
    else
      return linkage;
  }
}

void ModuleParser::parseVariables(StateSpace space, const Linkage &linkage) {
  VariableHead head = parseVariableHead(stream_, space);
  head.variable.isExtern = linkage.isExtern;
  head.variable.isVisible = linkage.isVisible;
  head.variable.isWeak = linkage.isWeak;
  do
    addVariable(parseDeclarator(stream_, head));
  while (stream_.accept(","));
  stream_.expect(";", "after the variable");
}

/// A definition may follow a declaration, and takes its place.
void ModuleParser::addVariable(Variable variable) {
  auto [place, isNew] = module_.variableIndex.try_emplace(
      variable.name, module_.variables.size());
  if (isNew) {
    module_.variables.push_back(std::move(variable));
    return;
  }
  Variable &old = module_.variables[place->second];
  if (!old.isExtern && !variable.isExtern)
    stream_.fail(variable.line,
                 fmt::format("the variable '{}' is defined twice, first in "
                             "line {}",
                             variable.name, old.line));
  if (old.isExtern)
    old = std::move(variable);
}

void ModuleParser::parseFunction(bool isEntry, const Linkage &linkage) {
  Function function;
  function.isEntry = isEntry;
  function.isVisible = linkage.isVisible || linkage.isExtern;
  function.isWeak = linkage.isWeak;
  while (stream_.accept(".attribute"))
    skipAttribute(stream_);
  if (!isEntry && stream_.peek().is("("))
    function.results = parseParameters(stream_);
  Token name = stream_.expectName("a function");
  function.name = name.text;
  function.line = name.line;
  if (stream_.peek().is("("))
    function.parameters = parseParameters(stream_);
  parseFunctionDirectives(function);
  if (stream_.accept(";")) {
    addFunction(std::move(function));
    return;
  }
  if (!stream_.peek().is("{"))
    stream_.failExpected("'{' or ';' after the head of a function");
  function.hasBody = true;
  FunctionParser body(stream_, function, [this](const std::string &name) {
    return isDeclared(name);
  });
  for (OpenName &open : body.parse())
    open_.push_back(std::move(open));
  addFunction(std::move(function));
}

void ModuleParser::parseFunctionDirectives(Function &function) {
  static constexpr std::array<std::string_view, 12> kNames = {
      ".maxntid",         ".reqntid",           ".minnctapersm",
      ".maxnctapersm",    ".maxnreg",           ".reqnctapercluster",
      ".explicitcluster", ".maxclusterrank",    ".noreturn",
      ".abi_preserve",    ".blocksareclusters", ".abi_preserve_control"};
  while (stream_.peek().isDotWord()) {
    if (stream_.accept(".pragma")) {
      skipPragma();
      continue;
    }
    if (std::find(kNames.begin(), kNames.end(), stream_.peek().text) ==
        kNames.end())
      stream_.failExpected(
          fmt::format("'{{', ';' or one of {}", fmt::join(kNames, ", ")));
    std::string name(stream_.next().text.substr(1));
    std::vector<int> &values = function.directives[name];
    values.clear();
    if (stream_.peek().kind != Token::Kind::integer)
      continue;
    do {
      int line = stream_.peek().line;
      values.push_back(stream_.expectInt("a number after ." + name));
      bool isShape = name == "reqntid" || name == "maxntid";
      if (isShape && (values.size() > 3 || values.back() == 0))
        stream_.fail(line, fmt::format(".{} takes one to three sizes, none of "
                                       "which is 0",
                                       name));
    } while (stream_.accept(","));
  }
}

/// A definition may follow declarations or come before them; it is what stays.
void ModuleParser::addFunction(Function function) {
  auto [place, isNew] = module_.functionIndex.try_emplace(
      function.name, module_.functions.size());
  if (isNew) {
    module_.functions.push_back(std::move(function));
    return;
  }
  if (!function.hasBody)
    return;
  Function &old = module_.functions[place->second];
  if (old.hasBody)
    stream_.fail(function.line,
                 fmt::format("the function '{}' is defined twice, first in "
                             "line {}",
                             function.name, old.line));
  old = std::move(function);
}

void ModuleParser::checkSymbols() {
  for (const auto &[name, function] : module_.aliases)
    if (module_.functionIndex.count(function) == 0)
      stream_.fail(1, fmt::format("the alias '{}' names '{}', which is no "
                                  "function of the module",
                                  name, function));
  for (const OpenName &open : open_)
    if (!isDeclared(open.name))
      stream_.fail(open.line,
                   fmt::format("'{}' is neither declared in this function nor "
                               "a variable or a function of the module",
                               open.name));
  for (const Variable &variable : module_.variables)
    checkRelocations(variable);
  for (const Function &function : module_.functions)
    for (const Variable &variable : function.locals)
      checkRelocations(variable);
}

void ModuleParser::checkRelocations(const Variable &variable) {
  for (const Variable::Relocation &relocation : variable.relocations)
    if (!isDeclared(relocation.symbol))
      stream_.fail(variable.line,
                   fmt::format("the initialiser of '{}' names '{}', which the "
                               "module does not declare",
                               variable.name, relocation.symbol));
}

Module parse(const std::string &text, const std::string &origin) {
  return ModuleParser(text, origin).parse();
}

} // namespace kiln::ptx
