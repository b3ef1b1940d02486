// PoisonRule: how bytes that nobody wrote pass through an instruction.
//
// A move, a shift or a logical operation passes on each bit where it goes,
// operations on pairs keep the two halves apart, integer sums spoil what lies
// above, and everything else spoils the whole result.
#pragma once

#include <cstdint>

namespace kiln::sim {

struct PoisonRule {
  enum class Kind : std::uint8_t {
    none,   ///< no arithmetic
    own,    ///< the handler sees to it
    all,    ///< one bad bit spoils everything
    bits,   ///< each bit goes somewhere, or is masked
    upward, ///< as carries do
    halves, ///< lower halves to the lower half, upper to the upper
    pack,   ///< the first source to the upper half, the second to the lower
  };
  /// What is done with the predicate that a comparison also takes; `choice`: it
  /// takes the first source where that holds, the second elsewhere.
  enum class Join : std::uint8_t { other, conjunction, disjunction, choice };

  Kind kind = Kind::none;
  std::uint8_t controls = 0; ///< sources that say where bits go: one bit each
  Join join = Join::other;

  /// Whether poison is passed on without the handler.
  bool isGeneral() const { return kind > Kind::own; }
};

} // namespace kiln::sim
