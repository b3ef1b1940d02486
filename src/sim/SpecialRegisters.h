// SpecialRegisters: the special registers that keep their value while a warp
// lives; clocks are mov's own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace kiln::sim {

class Warp;

struct SpecialRegister {
  int bytes;
  std::uint64_t (*value)(const Warp &warp, int lane);
};

/// Nothing where the name is none of them.
std::optional<SpecialRegister> findSpecialRegister(const std::string &name);

} // namespace kiln::sim
