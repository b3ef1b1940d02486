// SpecialRegisters: the special registers that keep their value while a warp
// lives; clocks are mov's own.
#pragma once

#include "sim/program/InstructionSet.h"

namespace kiln::sim {

/// Nothing where the name is none of them.
std::optional<SpecialRegister> findSpecialRegister(std::string_view name);

inline bool isClock(std::string_view name) {
  return name.starts_with("%clock") || name.starts_with("%globaltimer");
}

} // namespace kiln::sim
