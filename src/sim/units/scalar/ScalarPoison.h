// ScalarPoison: what becomes of unwritten bytes in arithmetic.
#pragma once

#include "ptx/Ast.h"
#include "sim/program/PoisonRule.h"

namespace kiln::sim {

/// Each bit goes somewhere; those of the sources in `Controls` say where.
PoisonRule bitsPoison(const ptx::Instruction &instruction,
                      std::uint8_t controls);
template <int Controls = 0>
PoisonRule bitsPoison(const ptx::Instruction &instruction) {
  return bitsPoison(instruction, Controls);
}
/// The same of two sources, of predicates too, and of a choice between them.
template <PoisonRule::Join Join>
PoisonRule joinPoison(const ptx::Instruction &instruction) {
  PoisonRule rule = bitsPoison(instruction, 0);
  rule.join = Join;
  return rule;
}
/// The same, of predicates too.
PoisonRule movePoison(const ptx::Instruction &instruction);
/// Halves of pairs apart; else everything is spoilt.
PoisonRule pairPoison(const ptx::Instruction &instruction);
/// The same, and integer sums and low products spoil what lies above.
PoisonRule sumPoison(const ptx::Instruction &instruction);
PoisonRule lowProductPoison(const ptx::Instruction &instruction);
/// Everything is spoilt, unless the other predicate decides.
PoisonRule comparisonPoison(const ptx::Instruction &instruction);
PoisonRule conversionPoison(const ptx::Instruction &instruction);

} // namespace kiln::sim
