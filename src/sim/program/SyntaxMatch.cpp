// SyntaxMatch: is each operand what a form wants there?
#include "sim/program/SyntaxMatch.h"
#include "support/Error.h"

#include <algorithm>
#include <cstdio>

namespace kiln::sim {

using Kind = OperandRule::Kind;
using TypeOf = OperandRule::TypeOf;
using ptx::Operand;
using ptx::ScalarType;

static bool isBits(ScalarType type) {
  return type >= ScalarType::b8 && type <= ScalarType::b128;
}
static bool isFloat(ScalarType type) { return type >= ScalarType::f16; }

/// m16n8k16: there are too many of them for a list.
static bool isShape(const std::string &modifier) {
  int m, n, k, end = 0;
  return std::sscanf(modifier.c_str(), "m%3dn%3dk%3d%n", &m, &n, &k, &end) ==
             3 &&
         static_cast<std::size_t>(end) == modifier.size();
}

Said::Said(const Syntax &syntax, const ptx::Function &function,
           const ptx::Instruction &instruction)
    : instruction(instruction), syntax_(syntax), function_(function) {
  for (const std::string &modifier : instruction.modifiers) {
    const Syntax::Word *word = syntax.find(modifier);
    if (!word && isShape(modifier))
      word = syntax.find("mNnNkN");
    if (!word)
      userError("the modifier .{} is not known for {}", modifier,
                instruction.opcode);
    words.set(word->number);
    if (word->isType) {
      types_[std::min(typeCount_, types_.size() - 1)] = word->type;
      ++typeCount_;
    }
    if (modifier == "tile::gather4" || modifier == "tile::scatter4")
      rank_ = 5; // a column and four rows
    if (modifier.size() != 2)
      continue;
    if (modifier == "v2" || modifier == "v4" || modifier == "v8")
      vectorLength_ = modifier[1] - '0';
    else if (modifier[1] == 'd' && modifier[0] >= '1' && modifier[0] <= '5')
      rank_ = modifier[0] - '0';
  }
}

std::pair<std::size_t, std::size_t> Said::counts(const FormRule &form) const {
  std::size_t least = 0, most = 0;
  for (const OperandRule &rule : form.operands) {
    if (!isPresent(rule))
      continue;
    ++most;
    least += rule.isOptional ? 0 : 1;
  }
  return {least, most};
}

std::size_t Said::firstUnfit(const FormRule &form) const {
  std::size_t unfit = instruction.operands.size();
  forEachOperand(form, [&](const OperandRule &rule, std::size_t at) {
    if (fits(rule, instruction.operands[at]))
      return true;
    unfit = at;
    return false;
  });
  return unfit;
}

bool Said::hasCount(const FormRule &form) const {
  auto [least, most] = counts(form);
  return instruction.operands.size() >= least &&
         instruction.operands.size() <= most;
}

bool Said::hasTypes(const FormRule &form) const {
  return form.types == 0 || typeCount_ == form.types;
}

bool Said::isLike(const FormRule &form) const {
  return hasTypes(form) && hasCount(form) &&
         firstUnfit(form) == instruction.operands.size();
}

/// The type of twice the bits.
static ScalarType widened(ScalarType type) {
  using enum ScalarType;
  switch (type) {
  case u16:
    return u32;
  case s16:
    return s32;
  case u32:
    return u64;
  default:
    return s64;
  }
}

ScalarType Said::typeOf(const OperandRule &rule) const {
  switch (rule.typeOf) {
  case TypeOf::last:
    return types_[typeCount_ - 1];
  case TypeOf::first:
    return types_[0];
  case TypeOf::second:
    return types_[1];
  case TypeOf::wide:
    return widened(types_[typeCount_ - 1]);
  default:
    return rule.type;
  }
}

/// A register holds a type of its size and kind: bits are of every kind.
bool Said::fitsRegister(const OperandRule &rule, const Operand &operand,
                        ScalarType type) const {
  ScalarType own = declared(operand.reg);
  if (own == ScalarType::pred || (operand.isNegated && !rule.canNegate))
    return false;
  if (rule.typeOf == TypeOf::any)
    return true;
  int ownBytes = ptx::sizeBytes(own), bytes = ptx::sizeBytes(type);
  bool isWider = rule.canBeWider && ownBytes > bytes && ownBytes <= 8;
  if (ownBytes != bytes && !isWider)
    return false;
  if (isFloat(type))
    return isBits(own) || own == type;
  return isBits(type) || !isFloat(own);
}

/// A real is a float of any size, and of the types of bits that of its own
/// size; ptxas does not look into vectors.
static bool fitsReal(const OperandRule &rule, const Operand &operand,
                     ScalarType type) {
  bool isElement = rule.kind == Kind::vector || rule.kind == Kind::list;
  switch (type) {
  case ScalarType::f32:
  case ScalarType::f64:
    return true;
  case ScalarType::b32:
    return isElement || operand.isSingle;
  case ScalarType::b64:
    return isElement || !operand.isSingle;
  default:
    return rule.typeOf == TypeOf::any;
  }
}

bool Said::fitsValue(const OperandRule &rule, const Operand &operand,
                     ScalarType type) const {
  int bytes = ptx::sizeBytes(type);
  bool isInteger = rule.typeOf == TypeOf::any || (!isFloat(type) && bytes < 16);
  switch (operand.kind) {
  case Operand::Kind::reg:
    return operand.name.empty() && fitsPair(rule, operand) &&
           fitsRegister(rule, operand, type);
  case Operand::Kind::sink:
    return rule.canSink && operand.name.empty() && fitsPair(rule, operand);
  case Operand::Kind::immediate:
    return !rule.isResult && isInteger;
  case Operand::Kind::real:
    return !rule.isResult && fitsReal(rule, operand, type);
  case Operand::Kind::special:
    return !rule.isResult && isInteger &&
           (rule.canBeSpecial || operand.name == "WARP_SZ");
  case Operand::Kind::symbol:
    return rule.canBeSymbol && isInteger;
  default:
    return false;
  }
}

bool Said::fitsPair(const OperandRule &rule, const Operand &operand) const {
  if (operand.pairedReg < 0)
    return !rule.mustPair;
  return rule.canPair && declared(operand.pairedReg) == ScalarType::pred;
}

bool Said::fitsPredicate(const OperandRule &rule,
                         const Operand &operand) const {
  switch (operand.kind) {
  case Operand::Kind::reg:
    return declared(operand.reg) == ScalarType::pred && operand.name.empty() &&
           fitsPair(rule, operand) && !(rule.isResult && operand.isNegated);
  case Operand::Kind::sink:
    return rule.canSink && operand.name.empty() && fitsPair(rule, operand);
  case Operand::Kind::immediate:
    return !rule.isResult;
  case Operand::Kind::special: // the one that is a predicate
    return rule.canBeSpecial && operand.name == "%is_explicit_cluster";
  default:
    return false;
  }
}

bool Said::fitsAddress(const Operand &base) const {
  if (base.kind != Operand::Kind::reg)
    return base.kind == Operand::Kind::symbol ||
           base.kind == Operand::Kind::immediate;
  ScalarType type = declared(base.reg);
  return type != ScalarType::pred && !isFloat(type) &&
         ptx::sizeBytes(type) <= 8 && !base.isNegated && base.name.empty() &&
         base.pairedReg < 0;
}

bool Said::areAll(const OperandRule &rule, const Operand &vector,
                  ScalarType type) const {
  OperandRule element = rule;
  element.kind = Kind::vector;
  element.canSink = rule.isResult;
  return std::all_of(
      vector.elements.begin(), vector.elements.end(),
      [&](const Operand &one) { return fitsValue(element, one, type); });
}

/// The arguments or results of a call: registers, literals, parameters.
bool Said::fitsList(const OperandRule &rule, const Operand &list) const {
  OperandRule element = rule;
  element.typeOf = TypeOf::any;
  element.canSink = rule.isResult;
  element.canBeSymbol = true;
  return list.kind == Operand::Kind::list &&
         std::all_of(list.elements.begin(), list.elements.end(),
                     [&](const Operand &one) {
                       return fitsValue(element, one, ScalarType::b64) &&
                              one.offset == 0;
                     });
}

bool Said::fits(const OperandRule &rule, const Operand &operand) const {
  ScalarType type = typeOf(rule);
  bool isVector = operand.kind == Operand::Kind::vector;
  std::size_t count = operand.elements.size();
  switch (rule.kind) {
  case Kind::value:
    return fitsValue(rule, operand, type);
  case Kind::reg:
    return operand.kind == Operand::Kind::reg && fitsValue(rule, operand, type);
  case Kind::predicate:
    return fitsPredicate(rule, operand);
  case Kind::part: {
    // The unit knows the selectors.
    Operand whole = operand;
    whole.name.clear();
    return fitsValue(rule, operand.kind == Operand::Kind::reg ? whole : operand,
                     ScalarType::u32);
  }
  case Kind::address:
    return operand.kind == Operand::Kind::address && count == 1 &&
           fitsAddress(operand.elements[0]);
  case Kind::tensor:
    return operand.kind == Operand::Kind::address && count == 2 &&
           fitsAddress(operand.elements[0]) &&
           operand.elements[1].kind == Operand::Kind::vector &&
           operand.elements[1].elements.size() == rank_ &&
           areAll(OperandRule{}, operand.elements[1], ScalarType::s32);
  case Kind::byVector:
    if (vectorLength_ == 1 && !isVector)
      return fitsValue(rule, operand, type);
    return isVector && count == vectorLength_ && areAll(rule, operand, type);
  case Kind::vector:
    return isVector && count > 0 && areAll(rule, operand, type);
  case Kind::parts: {
    static constexpr ScalarType kParts[] = {ScalarType::b8, ScalarType::b16,
                                            ScalarType::b32, ScalarType::b64};
    for (ScalarType part : kParts)
      if (isVector && (count == 2 || count == 4) && isBits(type) &&
          ptx::sizeBytes(part) * count == std::size_t(ptx::sizeBytes(type)))
        return areAll(rule, operand, part);
    return false;
  }
  case Kind::immediate:
    return operand.kind == Operand::Kind::immediate;
  case Kind::label:
    return operand.kind == Operand::Kind::label && operand.offset == 0;
  case Kind::name:
  case Kind::function:
    return operand.kind == Operand::Kind::symbol && operand.offset == 0;
  case Kind::list:
    return fitsList(rule, operand);
  case Kind::sink:
    return operand.kind == Operand::Kind::sink && operand.name.empty() &&
           operand.pairedReg < 0;
  }
  return false;
}

std::size_t Syntax::check(const ptx::Function &function,
                          const ptx::Instruction &instruction) const {
  Said said(*this, function, instruction);
  bool hasForm = false;
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    if (!rules_[i].hasModifiers(said.words))
      continue;
    hasForm = true;
    if (said.isLike(rules_[i]))
      return i;
  }
  if (hasForm)
    said.refuseOperands();
  said.refuseModifiers();
}

} // namespace kiln::sim
