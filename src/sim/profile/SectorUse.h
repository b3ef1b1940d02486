// SectorUse: which sectors of global memory were read once, read again, and
// written.
//
// Two bits of a sector say how often it was read, so that what several clusters
// have read adds up to the same in whatever order they are taken in.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>

namespace kiln::sim {

class SectorUse {
public:
  void read(std::uint64_t sector);
  void write(std::uint64_t sector);
  void add(const SectorUse &more);

  /// Sectors that one request has read, and that more have; that were written.
  struct Totals {
    std::uint64_t once = 0, again = 0, written = 0;
  };
  Totals totals() const;

private:
  static constexpr std::uint64_t kWordSectors = 64;
  /// Bits of 64 sectors.
  struct Use {
    std::uint64_t once = 0, again = 0, written = 0;
  };
  std::unordered_map<std::uint64_t, Use> uses_; ///< by sector / 64
};

} // namespace kiln::sim
