// PoisonRule: from opcodes, types and modifiers to rules.
#include "sim/program/PoisonRule.h"

#include <algorithm>
#include <vector>

namespace kiln::sim {

PoisonRule poisonRuleOf(const ptx::Instruction &instruction) {
  using enum ptx::ScalarType;
  std::vector<ptx::ScalarType> types;
  for (const std::string &modifier : instruction.modifiers)
    if (ptx::ScalarType type; ptx::parseScalarType(modifier, type))
      types.push_back(type);
  auto has = [&](std::initializer_list<ptx::ScalarType> wanted) {
    return std::any_of(types.begin(), types.end(), [&](ptx::ScalarType type) {
      return std::find(wanted.begin(), wanted.end(), type) != wanted.end();
    });
  };
  const std::string &name = instruction.opcode;
  if (has({pred}))
    return name == "mov" || name == "not" ? PoisonRule::all : PoisonRule::own;
  static constexpr const char *kBits[] = {"mov", "and", "or",   "xor",  "not",
                                          "shl", "shr", "shf",  "lop3", "prmt",
                                          "bfe", "bfi", "brev", "selp"};
  if (std::find(std::begin(kBits), std::end(kBits), name) != std::end(kBits))
    return PoisonRule::bits;
  if (name == "cvt") {
    // Two floats become a pair; integers are cut or extended.
    if (instruction.operands.size() == 3 && has({f16x2, bf16x2}) && has({f32}))
      return PoisonRule::pack;
    bool isInteger = std::all_of(types.begin(), types.end(), [](auto type) {
      return type < f16 && type != pred;
    });
    return isInteger && !instruction.has("sat") && !instruction.has("pack")
               ? PoisonRule::bits
               : PoisonRule::all;
  }
  if (has({f16x2, bf16x2}) || instruction.has("u16x2") ||
      instruction.has("s16x2"))
    return PoisonRule::halves;
  bool isSum = name == "add" || name == "sub" || name == "neg" ||
               ((name == "mul" || name == "mad") && instruction.has("lo"));
  bool isInteger = !types.empty() && types.back() < f16;
  return isSum && isInteger && !instruction.has("sat") ? PoisonRule::upward
                                                       : PoisonRule::all;
}

} // namespace kiln::sim
