// Ast: look-ups in a parsed module.
#include "ptx/Ast.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace kiln::ptx {

namespace {
struct TypeEntry {
  std::string_view name;
  int bytes;
};
} // namespace

/// In the order of ScalarType.
static constexpr std::array<TypeEntry, 44> kTypes = {
    {{"pred", 1},  {"b8", 1},   {"b16", 2},    {"b32", 4},    {"b64", 8},
     {"b128", 16}, {"u8", 1},   {"u16", 2},    {"u32", 4},    {"u64", 8},
     {"s8", 1},    {"s16", 2},  {"s32", 4},    {"s64", 8},    {"u2", 1},
     {"s2", 1},    {"u4", 1},   {"s4", 1},     {"b1", 1},     {"f16", 2},
     {"f16x2", 4}, {"bf16", 2}, {"bf16x2", 4}, {"tf32", 4},   {"f32", 4},
     {"f64", 8},   {"e4m3", 1}, {"e5m2", 1},   {"e4m3x2", 2}, {"e5m2x2", 2},
     {"e2m3", 1},  {"e3m2", 1}, {"e2m1", 1},   {"ue8m0", 1},  {"ue4m3", 1},
     {"e2m3x2", 2}, {"e3m2x2", 2}, {"e2m1x2", 1}, {"ue8m0x2", 2},
     {"e4m3x4", 4}, {"e5m2x4", 4}, {"e2m3x4", 4}, {"e3m2x4", 4},
     {"e2m1x4", 2}}};
static_assert(kTypes.size() == static_cast<int>(ScalarType::e2m1x4) + 1);

int sizeBytes(ScalarType type) {
  return kTypes[static_cast<std::size_t>(type)].bytes;
}

std::string_view name(ScalarType type) {
  return kTypes[static_cast<std::size_t>(type)].name;
}

bool parseScalarType(const std::string &text, ScalarType &type) {
  for (std::size_t index = 0; index < kTypes.size(); ++index) {
    if (kTypes[index].name != text)
      continue;
    type = static_cast<ScalarType>(index);
    return true;
  }
  return false;
}

bool Instruction::has(const char *modifier) const {
  return std::find(modifiers.begin(), modifiers.end(), modifier) !=
         modifiers.end();
}

std::string Instruction::fullOpcode() const {
  std::string full = opcode;
  for (const std::string &modifier : modifiers)
    full += '.' + modifier;
  return full;
}

const Function *Module::find(const std::string &name) const {
  auto alias = aliases.find(name);
  const std::string &wanted = alias == aliases.end() ? name : alias->second;
  auto found = functionIndex.find(wanted);
  return found == functionIndex.end() ? nullptr : &functions[found->second];
}

const Variable *Module::findVariable(const std::string &name) const {
  auto found = variableIndex.find(name);
  return found == variableIndex.end() ? nullptr : &variables[found->second];
}

std::vector<const Function *> Module::entries() const {
  std::vector<const Function *> found;
  for (const Function &function : functions)
    if (function.isEntry)
      found.push_back(&function);
  return found;
}

} // namespace kiln::ptx
