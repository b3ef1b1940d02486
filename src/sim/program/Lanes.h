// Lanes: the 32 threads of a warp as bits of a word.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

namespace kiln::sim {

using Dim3 = std::array<std::uint32_t, 3>;

using LaneMask = std::uint32_t;
inline constexpr int kLanes = 32;
inline constexpr LaneMask kAllLanes = ~LaneMask(0);

/// Call `body(lane)` for each lane of `mask`, in order.
template <typename Body> inline void forEachLane(LaneMask mask, Body &&body) {
  while (mask) {
    int lane = std::countr_zero(mask);
    mask &= mask - 1;
    body(lane);
  }
}

/// The bit of each lane: a loop that asks for it needs no shift by lane.
inline constexpr std::array<LaneMask, kLanes> kLaneBits = [] {
  std::array<LaneMask, kLanes> bits{};
  for (int lane = 0; lane < kLanes; ++lane)
    bits[lane] = LaneMask(1) << lane;
  return bits;
}();

/// The lanes for which `test(lane)` holds.
template <typename F>
[[gnu::always_inline]] inline LaneMask testLanes(F &&test) {
  alignas(64) std::uint8_t holds[kLanes];
  for (int lane = 0; lane < kLanes; ++lane)
    holds[lane] = test(lane) ? 1 : 0;
  LaneMask mask = 0;
  for (int byte = 0; byte < kLanes; byte += 8) {
    std::uint64_t word;
    std::memcpy(&word, holds + byte, 8);
    // Gathers the low bits of eight bytes into the top byte.
    mask |= LaneMask(word * 0x0102040810204080u >> 56) << byte;
  }
  return mask;
}

inline int firstLane(LaneMask mask) { return std::countr_zero(mask); }
inline int countLanes(LaneMask mask) { return std::popcount(mask); }

} // namespace kiln::sim
