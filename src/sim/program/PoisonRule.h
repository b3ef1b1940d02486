// PoisonRule: how bytes that nobody wrote pass through an instruction.
//
// A move, a shift or a logical operation passes on each bit where it goes,
// operations on pairs keep the two halves apart, integer sums spoil what lies
// above, and everything else spoils the whole result.
#pragma once

#include "ptx/Ast.h"

#include <cstdint>

namespace kiln::sim {

/// How poison of the sources reaches the results.
enum class PoisonRule : std::uint8_t {
  none,   ///< no arithmetic
  own,    ///< the handler sees to it
  all,    ///< one bad bit spoils everything
  bits,   ///< each bit goes somewhere, or is masked
  upward, ///< as carries do
  halves, ///< lower halves to the lower half, upper to the upper
  pack,   ///< the first source to the upper half, the second to the lower
};
PoisonRule poisonRuleOf(const ptx::Instruction &instruction);

} // namespace kiln::sim
