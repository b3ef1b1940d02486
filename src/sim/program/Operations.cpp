// Operations: from types and shapes to numbers.
#include "sim/program/Operations.h"

#include <array>
#include <charconv>
#include <optional>

namespace kiln::sim {

/// Elements of a float type that a lane holds in one value; 0: it is no float.
static int floatsIn(const std::string &type) {
  if (type == "f32" || type == "f64" || type == "f16" || type == "bf16")
    return 1;
  return type == "f32x2" || type == "f16x2" || type == "bf16x2" ? 2 : 0;
}

Operations floatOperations(const ptx::Instruction &instruction,
                           int perElement) {
  // Of mixed types the first is that of the result.
  for (const std::string &modifier : instruction.modifiers)
    if (int floats = floatsIn(modifier))
      return {.perLane = static_cast<std::uint64_t>(floats * perElement)};
  return {};
}

/// The numbers of "m16n8k16".
static std::optional<std::array<std::uint64_t, 3>>
shapeOf(const std::string &modifier) {
  std::array<std::uint64_t, 3> shape{};
  const char *at = modifier.data(), *end = at + modifier.size();
  for (int i = 0; i < 3; ++i) {
    if (at == end || *at != "mnk"[i])
      return std::nullopt;
    auto [next, error] = std::from_chars(at + 1, end, shape[i]);
    if (error != std::errc() || next == at + 1)
      return std::nullopt;
    at = next;
  }
  return at == end ? std::optional(shape) : std::nullopt;
}

Operations productOperations(const ptx::Instruction &instruction, int warps) {
  Operations result;
  // Fragments of wmma are loaded and stored in a shape too.
  if (instruction.has("load") || instruction.has("store"))
    return result;
  for (const std::string &modifier : instruction.modifiers) {
    ptx::ScalarType type;
    if (auto shape = shapeOf(modifier)) {
      auto [m, n, k] = *shape;
      result.perWarp = 2 * m * n * k / static_cast<std::uint64_t>(warps);
      result.tensor = modifier;
    } else if (!result.tensor.empty() && parseScalarType(modifier, type)) {
      result.tensor += "." + modifier;
    }
  }
  if (!result.tensor.empty() && instruction.has("sp"))
    result.tensor += ".sp";
  return result;
}

} // namespace kiln::sim
