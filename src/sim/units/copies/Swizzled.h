// Swizzled: where the hardware puts a byte of swizzled shared memory.
//
// TMA writes by this rule and wgmma reads by it; both mean absolute addresses.
#pragma once

#include "kiln/language/memory/tensor_map.h"

#include <cstdint>

namespace kiln::sim {

/// `address` under a swizzle of `widthBytes` (0, 32, 64, 128): bits 7.. select
/// among the 16-byte chunks of a row.
inline std::uint32_t swizzled(std::uint32_t address, std::uint32_t widthBytes) {
  if (widthBytes == 0)
    return address;
  return address ^ (((address >> 7) & (widthBytes / 16 - 1)) << 4);
}

/// The swizzle of 128 bytes in chunks of 32.
inline std::uint32_t swizzledWide(std::uint32_t address) {
  return address ^ (((address >> 7) & 3) << 5);
}

/// Where a map's way of swizzling puts a byte. Halves of 16 bytes that change
/// places (SwizzleAtom::b32_flip8) are not counted.
inline std::uint32_t swizzledBy(const TensorMap &map, std::uint32_t address) {
  switch (map.atom) {
  case SwizzleAtom::b16:
    break;
  case SwizzleAtom::b32:
  case SwizzleAtom::b32_flip8:
    return swizzledWide(address);
  case SwizzleAtom::b64:
    return address ^ ((address >> 7 & 1) << 6);
  }
  return swizzled(address, static_cast<std::uint32_t>(map.swizzle));
}

} // namespace kiln::sim
