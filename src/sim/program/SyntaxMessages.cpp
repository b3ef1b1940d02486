// SyntaxMessages: what is said of an instruction that has none of its opcode's
// forms: the modifier or the operand, and what would be accepted.
#include "sim/program/SyntaxMatch.h"
#include "support/Error.h"

#include <algorithm>

namespace kiln::sim {

using Kind = OperandRule::Kind;
using TypeOf = OperandRule::TypeOf;
using ptx::Operand;
using ptx::ScalarType;

/// The opcode with the modifiers that tell its forms apart.
std::string Said::nameOf(const FormRule &form) const {
  Words telling;
  for (const Words &one : form.needs)
    telling |= one;
  std::string name = instruction.opcode;
  for (const std::string &modifier : instruction.modifiers)
    if (const Syntax::Word *word = syntax_.find(modifier);
        word && telling.test(word->number) && !word->isType)
      name += '.' + modifier;
  return name;
}

std::string Said::found(const Operand &operand) const {
  switch (operand.kind) {
  case Operand::Kind::reg: {
    const ptx::Register &reg = function_.registers[operand.reg];
    std::string selector = operand.name.empty() ? "" : '.' + operand.name;
    if (operand.pairedReg >= 0)
      return fmt::format("the pair {}|{}", reg.name,
                         function_.registers[operand.pairedReg].name);
    return fmt::format("{}{} {}{}{}",
                       operand.isNegated ? "the negated " : "the ",
                       reg.type == ScalarType::pred ? "predicate" : "register",
                       reg.name, selector,
                       reg.type == ScalarType::pred || operand.isNegated
                           ? ""
                           : fmt::format(" of type .{}", ptx::name(reg.type)));
  }
  case Operand::Kind::special:
    return "the special register " + operand.name;
  case Operand::Kind::immediate:
    return "an integer";
  case Operand::Kind::real:
    return "a real number";
  case Operand::Kind::symbol:
    return fmt::format("the symbol '{}'", operand.name);
  case Operand::Kind::address:
    if (operand.elements.size() > 1)
      return "an address with coordinates";
    return fitsAddress(operand.elements[0])
               ? "an address"
               : "the address of " + found(operand.elements[0]);
  case Operand::Kind::vector:
    return fmt::format("a vector of {}", operand.elements.size());
  case Operand::Kind::label:
    return fmt::format("the label '{}'", operand.name);
  case Operand::Kind::sink:
    return operand.pairedReg < 0
               ? "'_'"
               : "the pair _|" + function_.registers[operand.pairedReg].name;
  case Operand::Kind::list:
    return "a list in parentheses";
  }
  return "something else";
}

/// "a register of type .b32": what would be accepted.
std::string Said::wanted(const OperandRule &rule) const {
  std::string type = fmt::format(" of type .{}{}", ptx::name(typeOf(rule)),
                                 rule.canBeWider ? " or wider" : "");
  const char *what = rule.isResult ? "a register" : "a value";
  switch (rule.kind) {
  case Kind::value:
    return what + type + (rule.mustPair ? " paired with a predicate" : "");
  case Kind::reg:
    return "a register" + type;
  case Kind::predicate:
    return "a predicate";
  case Kind::part:
    return fmt::format("{} of 32 bits or a part of one", what);
  case Kind::address:
    return "an address";
  case Kind::tensor:
    return fmt::format("a tensor map's address with {} coordinate{}", rank_,
                       rank_ == 1 ? "" : "s");
  case Kind::byVector:
    return vectorLength_ == 1
               ? what + type
               : fmt::format("a vector of {}{}", vectorLength_, type);
  case Kind::vector:
    return rule.typeOf == TypeOf::any ? "a vector of registers"
                                      : "a vector of elements" + type;
  case Kind::parts:
    return "a vector of the parts" + type;
  case Kind::immediate:
    return "an integer constant";
  case Kind::label:
    return "a label";
  case Kind::name:
    return "the name of a table or a prototype";
  case Kind::function:
    return "a function";
  case Kind::list:
    return "a list of registers, constants and parameters";
  case Kind::sink:
    return "_";
  }
  return "something else";
}

/// "2 operands (address, value)"
std::string Said::operandList(const FormRule &form) const {
  static constexpr const char *kNames[] = {
      "value",    "register", "predicate",
      "value",    "address",  "tensor coordinates",
      "value",    "vector",   "vector",
      "integer",  "label",    "table",
      "function", "list",     "_"};
  auto [least, most] = counts(form);
  std::string list;
  for (const OperandRule &rule : form.operands) {
    if (!isPresent(rule))
      continue;
    bool isRegister = rule.kind == Kind::value || rule.kind == Kind::part ||
                      (rule.kind == Kind::byVector && vectorLength_ == 1);
    list += list.empty() ? " (" : ", ";
    list += rule.isOptional ? "optional " : "";
    list += rule.kind == Kind::byVector && vectorLength_ > 1 ? "vector"
            : rule.isResult && isRegister
                ? "result"
                : kNames[static_cast<std::size_t>(rule.kind)];
  }
  std::string count = least == most ? std::to_string(least)
                                    : fmt::format("{} to {}", least, most);
  if (most == 0)
    count = "no";
  return fmt::format("{} operand{}{}{}", count, most == 1 ? "" : "s", list,
                     list.empty() ? "" : ")");
}

/// " .up .down"
std::string Said::listOf(const Words &some) const {
  std::string list;
  for (std::size_t i = 0; i < some.size(); ++i)
    if (some.test(i))
      list += fmt::format(" .{}", syntax_.text(i));
  return list;
}

void Said::refuseModifiers() const {
  // The forms that have most of what they need are those that were meant.
  const FormRule *meant = nullptr;
  std::size_t best = 0;
  Words missing;
  for (const FormRule &form : syntax_.rules()) {
    auto isMet = [&](const Words &one) { return (words & one).any(); };
    auto unmet = std::find_if_not(form.needs.begin(), form.needs.end(), isMet);
    std::size_t score =
        2 * std::count_if(form.needs.begin(), form.needs.end(), isMet) +
        (unmet == form.needs.end() ? 1 : 0);
    if (meant && score < best)
      continue;
    if (!meant || score > best) {
      meant = &form;
      best = score;
      missing.reset();
    }
    if (unmet != form.needs.end())
      missing |= *unmet;
  }
  if (missing.any())
    userError("{} needs{}{}", nameOf(*meant),
              missing.count() == 1 ? "" : " one of", listOf(missing));
  for (const Words &one : meant->exclusive)
    if ((words & one).count() > 1)
      userError("{} takes one of{}, not several", instruction.opcode,
                listOf(words & one));
  for (const std::string &modifier : instruction.modifiers)
    if (const Syntax::Word *word = syntax_.find(modifier);
        word && !meant->takes.test(word->number))
      userError("the modifier .{} is not known for {}", modifier,
                nameOf(*meant));
  userError("a shape is not known for {}", nameOf(*meant));
}

void Said::refuseCount() const {
  std::string name, lists;
  for (const FormRule &form : syntax_.rules()) {
    if (!form.hasModifiers(words))
      continue;
    name = nameOf(form);
    std::string list = operandList(form);
    if (lists.find(list) == std::string::npos)
      lists += (lists.empty() ? "" : " or ") + list;
  }
  userError("{} takes {}, not {}", name, lists, instruction.operands.size());
}

void Said::refuseOperands() const {
  std::string name, list;
  std::size_t furthest = 0;
  for (const FormRule &form : syntax_.rules()) {
    if (!form.hasModifiers(words))
      continue;
    if (!hasTypes(form))
      userError("{} takes {} type{}, not {}", nameOf(form), form.types,
                form.types == 1 ? "" : "s", typeCount_);
    if (!hasCount(form))
      continue;
    std::size_t unfit = firstUnfit(form);
    if (unfit < furthest)
      continue;
    if (unfit > furthest)
      list.clear();
    furthest = unfit;
    name = nameOf(form);
    forEachOperand(form, [&](const OperandRule &rule, std::size_t at) {
      std::string one = at == unfit ? wanted(rule) : "";
      if (list.find(one) == std::string::npos)
        list += (list.empty() ? "" : " or ") + one;
      return at < unfit;
    });
  }
  if (list.empty())
    refuseCount();
  userError("operand {} of {} is {}, and must be {}", furthest + 1, name,
            found(instruction.operands[furthest]), list);
}

} // namespace kiln::sim
