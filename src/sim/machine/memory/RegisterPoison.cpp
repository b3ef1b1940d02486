// RegisterPoison: masks, and bytes where a lane is written in part.
#include "sim/machine/memory/RegisterPoison.h"

#include <algorithm>

namespace kiln::sim {

std::uint64_t spreadBytes(std::uint8_t bytes) {
  std::uint64_t bits = 0;
  for (int i = 0; i < 8; ++i)
    if (bytes >> i & 1)
      bits |= std::uint64_t(0xff) << (8 * i);
  return bits;
}

std::uint8_t gatherBytes(std::uint64_t bits) {
  unsigned bytes = 0;
  for (int i = 0; i < 8; ++i)
    bytes |= unsigned((bits >> (8 * i) & 0xff) != 0) << i;
  return static_cast<std::uint8_t>(bytes);
}

/// The bytes that a register's value has.
static std::uint8_t bytesOf(const Reg &reg) {
  int count = std::min<int>(reg.bytes, 8);
  return static_cast<std::uint8_t>((1u << count) - 1);
}

std::uint64_t RegisterPoison::bits(const Reg &reg, int lane) const {
  if (!(any_[reg.index] >> lane & 1))
    return 0;
  bool isPartial = !partial_.empty() && (partial_[reg.index] >> lane & 1);
  return spreadBytes(isPartial ? bytes_[reg.index][lane] : bytesOf(reg));
}

void RegisterPoison::setSomeBits(const Reg &reg, int lane, std::uint64_t bits) {
  std::uint8_t bytes = gatherBytes(bits) & bytesOf(reg);
  LaneMask bit = LaneMask(1) << lane;
  set(reg, bit, bytes && isTracked_ ? bit : 0);
  if (!bytes || bytes == bytesOf(reg) || !isTracked_)
    return;
  if (partial_.empty()) {
    partial_.resize(any_.size());
    bytes_.resize(any_.size());
  }
  partial_[reg.index] |= bit;
  bytes_[reg.index][lane] = bytes;
}

} // namespace kiln::sim
