// ParseInstructions: instructions and their operands, for FunctionParser.
#include "ptx/FunctionParser.h"

#include "ptx/Constant.h"
#include "support/Error.h"

#include <unordered_set>
#include <utility>

namespace kiln::ptx {

/// Is this a special register of the PTX manual?
static bool isSpecialRegister(std::string_view name) {
  static const std::unordered_set<std::string_view> kNames = {
      "%tid",
      "%ntid",
      "%laneid",
      "%warpid",
      "%nwarpid",
      "%ctaid",
      "%nctaid",
      "%smid",
      "%nsmid",
      "%gridid",
      "%is_explicit_cluster",
      "%clusterid",
      "%nclusterid",
      "%cluster_ctaid",
      "%cluster_nctaid",
      "%cluster_ctarank",
      "%cluster_nctarank",
      "%lanemask_eq",
      "%lanemask_le",
      "%lanemask_lt",
      "%lanemask_ge",
      "%lanemask_gt",
      "%clock",
      "%clock_hi",
      "%clock64",
      "%globaltimer",
      "%globaltimer_lo",
      "%globaltimer_hi",
      "%reserved_smem_offset_begin",
      "%reserved_smem_offset_end",
      "%reserved_smem_offset_cap",
      "%reserved_smem_offset_0",
      "%reserved_smem_offset_1",
      "%total_smem_size",
      "%aggr_smem_size",
      "%dynamic_smem_size",
      "%current_graph_exec",
      "WARP_SZ"};
  if (kNames.count(name) != 0)
    return true;
  for (std::string_view family : {"%envreg", "%pm"})
    if (name.size() > family.size() && name.substr(0, family.size()) == family)
      return name[family.size()] >= '0' && name[family.size()] <= '9';
  return false;
}

void FunctionParser::parseInstruction() {
  std::size_t first = stream_.position();
  Instruction instruction;
  instruction.line = stream_.peek().line;
  instruction.source = source_;
  hasOpenName_ = false;
  if (stream_.accept("@"))
    parsePredicate(instruction);
  instruction.opcode = stream_.expectName("an instruction").text;
  while (stream_.peek().isDotWord())
    instruction.modifiers.emplace_back(stream_.next().text.substr(1));
  bool isCall = instruction.opcode == "call";
  if (!stream_.peek().is(";"))
    do
      instruction.operands.push_back(parseOperand(isCall));
    while (stream_.accept(","));
  stream_.expect(";", "after the instruction");
  instruction.text = stream_.textSince(first);
  if (hasOpenName_)
    pending_.push_back({function_.body.size(), scopes_.current()});
  function_.body.push_back(std::move(instruction));
}

void FunctionParser::parsePredicate(Instruction &instruction) {
  instruction.isPredicateNegated = stream_.accept("!");
  Token name = stream_.peek();
  instruction.predicate = expectRegister();
  if (function_.registers[instruction.predicate].type != ScalarType::pred)
    stream_.fail(name.line, fmt::format("the register '{}' is not a predicate",
                                        name.text));
}

int FunctionParser::expectRegister() {
  Token name = stream_.expectName("a register");
  int reg = scopes_.find(name.text).reg;
  if (reg < 0)
    stream_.fail(name.line,
                 fmt::format("the register '{}' is not declared", name.text));
  return reg;
}

Operand FunctionParser::parseOperand(bool isCall) {
  TokenStream::Nesting nesting(stream_);
  const Token &token = stream_.peek();
  if (token.is("{"))
    return parseElements(Operand::Kind::vector, "}");
  if (token.is("["))
    return parseAddress();
  if (token.is("(") && isCall)
    return parseElements(Operand::Kind::list, ")");
  bool isNegatedName =
      (token.is("!") || token.is("-")) && stream_.peek(1).isName();
  if (isNegatedName) {
    stream_.next();
    Operand operand;
    operand.kind = Operand::Kind::reg;
    operand.isNegated = true;
    operand.reg = expectRegister();
    if (stream_.peek().isDotWord())
      operand.name = stream_.next().text.substr(1);
    return operand;
  }
  if (isConstantNext(stream_))
    return parseConstantOperand();
  if (token.isName())
    return parseNamed();
  stream_.failExpected("an operand");
}

/// A vector of registers, or one of them: `point.x`.
Operand FunctionParser::parseVectorRegister(int first, int width) {
  Operand operand;
  if (!stream_.peek().isDotWord()) {
    operand.kind = Operand::Kind::vector;
    for (int i = 0; i < width; ++i)
      operand.elements.emplace_back().kind = Operand::Kind::reg;
    for (int i = 0; i < width; ++i)
      operand.elements[i].reg = first + i;
    return operand;
  }
  Token word = stream_.next();
  std::string_view names = "xyzw", colors = "rgba";
  std::string_view element = word.text.substr(1);
  std::size_t at = element.size() == 1 ? names.find(element) : names.npos;
  if (at == names.npos && element.size() == 1)
    at = colors.find(element);
  if (at >= static_cast<std::size_t>(width))
    stream_.fail(word.line,
                 fmt::format("a vector of {} registers has no element '{}'",
                             width, word.text));
  operand.kind = Operand::Kind::reg;
  operand.reg = first + static_cast<int>(at);
  return operand;
}

Operand FunctionParser::parseNamed() {
  Token name = stream_.next();
  Operand operand;
  Scopes::Found found = scopes_.find(name.text);
  if (found.width > 1)
    return parseVectorRegister(found.reg, found.width);
  if (found.reg >= 0 || name.is("_")) {
    operand.kind = found.reg >= 0 ? Operand::Kind::reg : Operand::Kind::sink;
    operand.reg = found.reg;
    if (stream_.peek().isDotWord())
      operand.name = stream_.next().text.substr(1);
    if (stream_.accept("|") && !stream_.accept("_"))
      operand.pairedReg = expectRegister();
    return operand;
  }
  operand.name = found.variable ? *found.variable : std::string(name.text);
  operand.kind = Operand::Kind::symbol;
  if (!found.variable && isSpecialRegister(name.text)) {
    operand.kind = Operand::Kind::special;
    if (stream_.peek().isDotWord())
      operand.name += stream_.next().text;
    return operand;
  }
  if (!found.variable) {
    if (name.text.front() == '%')
      stream_.fail(name.line,
                   fmt::format("the register '{}' is not declared", name.text));
    operand.kind = Operand::Kind::label;
    hasOpenName_ = true;
  }
  operand.offset = parseOffset(stream_);
  return operand;
}

/// `[base+offset]`, or `[base, {x, y}]` of a tensor copy.
Operand FunctionParser::parseAddress() {
  Operand address;
  address.kind = Operand::Kind::address;
  stream_.expect("[", "before an address");
  do {
    address.elements.push_back(parseOperand(false));
    if (address.elements.size() == 1)
      // A symbol has taken its offset itself: it is the address's.
      address.offset = address.elements[0].kind == Operand::Kind::reg
                           ? parseOffset(stream_)
                           : std::exchange(address.elements[0].offset, 0);
  } while (stream_.accept(","));
  stream_.expect("]", "after the address");
  return address;
}

Operand FunctionParser::parseElements(Operand::Kind kind,
                                      std::string_view close) {
  Operand operand;
  operand.kind = kind;
  stream_.next();
  while (!stream_.peek().is(close)) {
    operand.elements.push_back(parseOperand(false));
    if (!stream_.accept(","))
      break;
  }
  stream_.expect(close, "after the operands");
  return operand;
}

Operand FunctionParser::parseConstantOperand() {
  Constant value = parseConstant(stream_);
  Operand operand;
  operand.kind = value.isReal ? Operand::Kind::real : Operand::Kind::immediate;
  operand.isSingle = value.isSingle;
  operand.bits = value.bits;
  return operand;
}

} // namespace kiln::ptx
