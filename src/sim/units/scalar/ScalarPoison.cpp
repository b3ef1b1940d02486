// ScalarPoison: rules from types and modifiers.
#include "sim/units/scalar/ScalarPoison.h"

#include <algorithm>
#include <initializer_list>
#include <vector>

namespace kiln::sim {

using ptx::ScalarType;
using Kind = PoisonRule::Kind;

static std::vector<ScalarType> typesOf(const ptx::Instruction &instruction) {
  std::vector<ScalarType> types;
  for (const std::string &modifier : instruction.modifiers)
    if (ScalarType type; ptx::parseScalarType(modifier, type))
      types.push_back(type);
  return types;
}

static bool hasType(const ptx::Instruction &instruction,
                    std::initializer_list<ScalarType> wanted) {
  for (ScalarType type : typesOf(instruction))
    if (std::find(wanted.begin(), wanted.end(), type) != wanted.end())
      return true;
  return false;
}

static bool isOfPairs(const ptx::Instruction &instruction) {
  return hasType(instruction, {ScalarType::f16x2, ScalarType::bf16x2}) ||
         instruction.has("u16x2") || instruction.has("s16x2");
}

PoisonRule bitsPoison(const ptx::Instruction &instruction,
                      std::uint8_t controls) {
  if (hasType(instruction, {ScalarType::pred}))
    return {Kind::own};
  PoisonRule rule = comparisonPoison(instruction); // lop3 has a predicate too
  rule.kind = Kind::bits;
  rule.controls = controls;
  return rule;
}

PoisonRule movePoison(const ptx::Instruction &instruction) {
  return {hasType(instruction, {ScalarType::pred}) ? Kind::all : Kind::bits};
}

PoisonRule pairPoison(const ptx::Instruction &instruction) {
  return {isOfPairs(instruction) ? Kind::halves : Kind::all};
}

PoisonRule sumPoison(const ptx::Instruction &instruction) {
  if (isOfPairs(instruction))
    return {Kind::halves};
  std::vector<ScalarType> types = typesOf(instruction);
  bool isInteger = !types.empty() && types.back() < ScalarType::f16;
  return {isInteger && !instruction.has("sat") ? Kind::upward : Kind::all};
}

PoisonRule lowProductPoison(const ptx::Instruction &instruction) {
  return instruction.has("lo") ? sumPoison(instruction)
                               : pairPoison(instruction);
}

PoisonRule comparisonPoison(const ptx::Instruction &instruction) {
  PoisonRule rule = pairPoison(instruction);
  if (instruction.has("and"))
    rule.join = PoisonRule::Join::conjunction;
  else if (instruction.has("or"))
    rule.join = PoisonRule::Join::disjunction;
  return rule;
}

PoisonRule conversionPoison(const ptx::Instruction &instruction) {
  // Two floats become a pair; integers are cut or extended.
  if (instruction.operands.size() == 3 &&
      hasType(instruction, {ScalarType::f16x2, ScalarType::bf16x2}) &&
      hasType(instruction, {ScalarType::f32}))
    return {Kind::pack};
  std::vector<ScalarType> types = typesOf(instruction);
  bool isInteger = std::all_of(types.begin(), types.end(), [](auto type) {
    return type < ScalarType::f16 && type != ScalarType::pred;
  });
  bool isCut = isInteger && !instruction.has("sat") && !instruction.has("pack");
  return {isCut ? Kind::bits : Kind::all};
}

} // namespace kiln::sim
