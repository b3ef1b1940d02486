// Circle: finds warps of a cluster that go round together for ever.
//
// Each of them is in a loop that repeats itself (LoopWatch): it decides by the
// same registers and has read the same values as in the round before, but
// others see something of what it does, so that they might still change what it
// reads. The simulator is deterministic: where all warps come back to the
// places of their loops that they were at, after some turns and again after as
// many, the second time found memory and barriers as the third will.
//
// Warps may also miss each other for ever because their turns are as long as
// they are, or wait for ever because no try_wait says no meanwhile. So every
// warp's turns are made shorter, each one's by a number of its own, and waits
// time out, a few times: what ends then was no circle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kiln::sim {

class Cluster;
class Warp;

class Circle {
public:
  /// All warps of the cluster have had a turn. Some warp of a circle; null:
  /// there is none, as far as is known.
  Warp *turn(Cluster &cluster);
  /// By how many instructions the turns of a CTA's warp are shorter now.
  int shorter(std::size_t warp) const {
    return static_cast<int>(changes_ * (kStep + 2 * warp) % kMostShorter);
  }

private:
  static constexpr std::size_t kStep = 37, kMostShorter = 256;
  static constexpr int kTries = 4;

  /// Where everybody is, and how far barriers are; false: not everybody is in
  /// a loop that repeats itself.
  bool findPlaces(Cluster &cluster);

  std::vector<std::uint64_t> kept_, now_;
  Warp *first_ = nullptr; ///< in a loop that repeats itself
  /// Turns since the places were kept, and until they are kept anew.
  std::uint64_t turns_ = 0, rest_ = 0;
  std::uint64_t period_ = 0; ///< turns after which all were back, once
  int found_ = 0;            ///< circles one after another
  std::size_t changes_ = 0;  ///< of the turns' lengths
};

} // namespace kiln::sim
