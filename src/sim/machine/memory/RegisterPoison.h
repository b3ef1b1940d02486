// RegisterPoison: which bytes of registers come from memory that nobody wrote.
//
// A load of unwritten bytes poisons those bytes of its register, and no more.
// Mostly nothing is poisoned at all, which one mask per register tells.
#pragma once

#include "sim/program/Program.h"
#include "support/limits/Recycled.h"

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
  /// One more stands for no register: nothing of it is ever unwritten.
  RegisterPoison(std::size_t registers, bool isTracked)
      : any_(registers + 1, isTracked ? kAllLanes : 0), isTracked_(isTracked) {
    any_.back() = 0;
  }

  /// Lanes in which some byte of one of four registers is unwritten.
  LaneMask anyOf(const std::array<std::uint32_t, 4> &registers) const {
    return any_[registers[0]] | any_[registers[1]] | any_[registers[2]] |
           any_[registers[3]];
  }
  /// All bytes of those lanes are written.
  void clear(std::uint32_t index, LaneMask lanes) {
    any_[index] &= ~lanes;
    if (!partial_.empty())
      partial_[index] &= ~lanes;
  }
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
  /// Where its unwritten bytes were read first: a number of the cluster's; 0:
  /// nowhere that is known.
  std::uint32_t origin(const Reg &reg) const {
    return origins_.empty() ? 0 : origins_[reg.index];
  }
  void setOrigin(const Reg &reg, std::uint32_t origin) {
    if (origins_.empty() && origin)
      origins_.resize(any_.size());
    if (!origins_.empty())
      origins_[reg.index] = origin;
  }
  void setBits(const Reg &reg, int lane, std::uint64_t bits) {
    if (bits)
      return setSomeBits(reg, lane, bits);
    set(reg, LaneMask(1) << lane, 0);
  }

private:
  void setSomeBits(const Reg &reg, int lane, std::uint64_t bits);

  std::vector<LaneMask, RecycledAllocator<LaneMask>> any_;
  /// Lanes some bytes of which are written; empty as long as there are none.
  std::vector<LaneMask> partial_;
  std::vector<std::array<std::uint8_t, kLanes>> bytes_; ///< of those lanes
  std::vector<std::uint32_t> origins_; ///< empty as long as there are none
  bool isTracked_;
};

} // namespace kiln::sim
