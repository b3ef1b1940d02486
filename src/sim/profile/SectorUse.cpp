// SectorUse: saturating counts of two bits.
#include "sim/profile/SectorUse.h"

#include <bit>

namespace kiln::sim {

void SectorUse::read(std::uint64_t sector) {
  Use &use = uses_[sector / kWordSectors];
  std::uint64_t bit = std::uint64_t(1) << sector % kWordSectors;
  use.again |= use.once & bit;
  use.once |= bit;
}

void SectorUse::write(std::uint64_t sector) {
  uses_[sector / kWordSectors].written |= std::uint64_t(1)
                                          << sector % kWordSectors;
}

void SectorUse::add(const SectorUse &more) {
  for (const auto &[place, other] : more.uses_) {
    Use &use = uses_[place];
    use.again |= other.again | (use.once & other.once);
    use.once |= other.once;
    use.written |= other.written;
  }
}

SectorUse::Totals SectorUse::totals() const {
  Totals totals;
  auto count = [](std::uint64_t bits) {
    return static_cast<std::uint64_t>(std::popcount(bits));
  };
  for (const auto &[place, use] : uses_) {
    totals.once += count(use.once & ~use.again);
    totals.again += count(use.again);
    totals.written += count(use.written);
  }
  return totals;
}

} // namespace kiln::sim
