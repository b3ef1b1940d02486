// Poison: which bytes of registers come from memory that nobody wrote.
//
// A load of unwritten bytes poisons those bytes of its register, and no more.
// What becomes of them is decided by the instruction: a move, a shift or a
// logical operation passes on each bit where it goes, operations on pairs keep
// the two halves apart, integer sums spoil what lies above, and everything else
// spoils the whole result. Mostly nothing is poisoned at all, which one mask
// per register tells.
#pragma once

#include "sim/Program.h"

#include <array>
#include <cstdint>
#include <vector>

namespace kiln::sim {

/// All ones in each byte whose bit of `bytes` is set.
std::uint64_t spreadBytes(std::uint8_t bytes);
/// One bit per byte of `bits` that has a bit set.
std::uint8_t gatherBytes(std::uint64_t bits);

/// The poison of a warp's registers. Sets of bytes are given as bits: all ones
/// in an unwritten byte.
class RegisterPoison {
public:
  /// Everything is unwritten at first; where nothing is tracked, nothing is.
  RegisterPoison(std::size_t registers, bool isTracked)
      : any_(registers, isTracked ? kAllLanes : 0), isTracked_(isTracked) {}

  /// Lanes in which some byte is unwritten.
  LaneMask lanes(const Reg &reg) const { return any_[reg.index]; }
  /// The unwritten bytes of a lane.
  std::uint64_t bits(const Reg &reg, int lane) const;
  /// Of `lanes`, those of `unwritten` are so in all bytes, the others in none.
  void set(const Reg &reg, LaneMask lanes, LaneMask unwritten) {
    any_[reg.index] = (any_[reg.index] & ~lanes) | (unwritten & lanes);
    if (!partial_.empty())
      partial_[reg.index] &= ~lanes;
  }
  void setBits(const Reg &reg, int lane, std::uint64_t bits) {
    if (bits)
      return setSomeBits(reg, lane, bits);
    set(reg, LaneMask(1) << lane, 0);
  }

private:
  void setSomeBits(const Reg &reg, int lane, std::uint64_t bits);

  std::vector<LaneMask> any_;
  /// Lanes some bytes of which are written; empty as long as there are none.
  std::vector<LaneMask> partial_;
  std::vector<std::array<std::uint8_t, kLanes>> bytes_; ///< of those lanes
  bool isTracked_;
};

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

/// Pass on the poison of an instruction's sources, before it is executed.
void spreadPoison(Warp &warp, const Op &op, LaneMask active);

} // namespace kiln::sim
