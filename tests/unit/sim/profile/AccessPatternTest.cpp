// Sectors, wavefronts and strides of single requests, computed by hand; what a
// GPU counts for hundreds more is held against Kiln by scripts/compare_ncu.
#include "sim/profile/AccessPattern.h"
#include "sim/profile/SectorUse.h"

#include <functional>
#include <gtest/gtest.h>

namespace kiln::sim {
namespace {

using Offset = std::function<std::uint64_t(std::uint64_t lane)>;

std::vector<LaneAccess> request(std::uint32_t bytes, const Offset &offset,
                                std::uint32_t mask = 0xffffffff) {
  std::vector<LaneAccess> accesses;
  for (std::uint8_t lane = 0; lane < 32; ++lane)
    if (mask >> lane & 1)
      accesses.push_back(
          {.address = offset(lane), .bytes = bytes, .lane = lane});
  return accesses;
}

/// Wavefronts of a load, and how many it would need without conflicts.
std::pair<std::uint32_t, std::uint32_t>
loadOf(std::uint32_t bytes, const Offset &offset,
       std::uint32_t mask = 0xffffffff) {
  Wavefronts w =
      wavefrontsOf(request(bytes, offset, mask), AccessKind::load, false);
  return {w.count, w.ideal};
}

using Two = std::pair<std::uint32_t, std::uint32_t>;

TEST(AccessPattern, SectorsAreThoseThatARequestTouches) {
  auto count = [](std::uint32_t bytes, const Offset &offset) {
    auto accesses = request(bytes, offset);
    std::uint64_t sectors = sectorsOf(accesses).size();
    return std::pair(sectors, idealSectors(accesses, sectors));
  };
  using Pair = std::pair<std::uint64_t, std::uint64_t>;
  EXPECT_EQ(count(4, [](auto i) { return 4 * i; }), Pair(4, 4));
  EXPECT_EQ(count(4, [](auto i) { return 4 * i + 4; }), Pair(5, 4));
  EXPECT_EQ(count(4, [](auto i) { return 8 * i; }), Pair(8, 4));
  EXPECT_EQ(count(4, [](auto i) { return 128 * i; }), Pair(32, 4));
  EXPECT_EQ(count(16, [](auto i) { return 16 * i; }), Pair(16, 16));
  EXPECT_EQ(count(4, [](auto) { return 64; }), Pair(1, 1));
  EXPECT_EQ(count(32, [](auto i) { return 32 * i + 16; }), Pair(33, 32));
}

TEST(AccessPattern, ConflictsAreWordsOfOneBank) {
  for (std::uint64_t way : {1, 2, 4, 8, 16, 32})
    EXPECT_EQ(loadOf(4, [&](auto i) { return 4 * way * i; }), Two(way, 1));
  // A row of 33 words.
  EXPECT_EQ(loadOf(4, [](auto i) { return 132 * i; }), Two(1, 1));
  // One word for all, and bytes of one word.
  EXPECT_EQ(loadOf(4, [](auto) { return 128; }), Two(1, 1));
  EXPECT_EQ(loadOf(1, [](auto i) { return i; }), Two(1, 1));
}

TEST(AccessPattern, WideAccessesHavePhases) {
  EXPECT_EQ(loadOf(8, [](auto i) { return 8 * i; }), Two(2, 2));
  EXPECT_EQ(loadOf(16, [](auto i) { return 16 * i; }), Two(4, 4));
  EXPECT_EQ(loadOf(16, [](auto i) { return 32 * i; }), Two(8, 4));
  // Rows of 144 bytes: eight lanes meet all banks once.
  EXPECT_EQ(loadOf(16, [](auto i) { return 144 * i; }), Two(4, 4));
  EXPECT_EQ(loadOf(16, [](auto i) { return 128 * i; }), Two(32, 4));
  // Half of the lanes.
  EXPECT_EQ(loadOf(16, [](auto i) { return 16 * i; }, 0xffff), Two(2, 2));
}

TEST(AccessPattern, LoadsOfNeighboursAreJoined) {
  EXPECT_EQ(loadOf(8, [](auto i) { return i / 2 * 8; }), Two(1, 1));
  EXPECT_EQ(loadOf(8, [](auto i) { return (i / 4 * 2 + i % 2) * 8; }),
            Two(1, 1));
  EXPECT_EQ(loadOf(8, [](auto i) { return (i / 8 * 4 + i % 4) * 8; }),
            Two(2, 2));
  EXPECT_EQ(loadOf(16, [](auto) { return 0; }), Two(2, 2));
  // Half of the warp by one rule and half by the other: not joined.
  EXPECT_EQ(loadOf(8,
                   [](auto i) {
                     return i < 16 ? i / 2 * 8 : (i / 4 * 2 + i % 2) * 8;
                   }),
            Two(2, 2));
  // Stores never are.
  Wavefronts stored =
      wavefrontsOf(request(8, [](auto i) { return i / 2 * 8; }),
                   AccessKind::store, false);
  EXPECT_EQ(stored.count, 2u);
}

TEST(AccessPattern, RowsOfMatricesGoEightByEight) {
  auto count = [](const Offset &offset) {
    return wavefrontsOf(request(16, offset), AccessKind::load, true).count;
  };
  EXPECT_EQ(count([](auto i) { return 16 * i; }), 4u);
  EXPECT_EQ(count([](auto i) { return 32 * i; }), 8u);
  EXPECT_EQ(count([](auto i) { return 128 * i; }), 32u);
  EXPECT_EQ(count([](auto) { return 0; }), 4u); // no joining
  // Each swizzle: rows as wide as its pattern.
  for (std::uint64_t width : {32, 64, 128})
    EXPECT_EQ(count([&](auto i) {
                std::uint64_t at = width * i;
                return at ^ (at >> 7 & (width / 16 - 1)) << 4;
              }),
              4u)
        << width;
}

TEST(AccessPattern, AtomicsCountLanes) {
  auto accesses = request(4, [](auto i) { return i / 4 * 4; });
  EXPECT_EQ(wavefrontsOf(accesses, AccessKind::atomic, false).count, 4u);
  EXPECT_EQ(collisionsOf(accesses), 24u);
  EXPECT_EQ(mostAtOneAddress(accesses), 4u);
}

TEST(AccessPattern, StridesAreTheSameForAllLanes) {
  EXPECT_EQ(strideOf(request(4, [](auto i) { return 12 * i; }), false), 12);
  EXPECT_EQ(strideOf(request(4, [](auto i) { return 400 - 4 * i; }), false),
            -4);
  EXPECT_EQ(strideOf(request(4, [](auto i) { return i * i; }), false),
            std::nullopt);
  EXPECT_EQ(strideOf(request(4, [](auto i) { return 4 * i; }, 0x5), false),
            std::nullopt);
  // Each matrix has rows of its own.
  auto rows = request(16, [](auto i) { return i / 8 * 1000 + i % 8 * 64; });
  EXPECT_EQ(strideOf(rows, true), 64);
  EXPECT_EQ(strideOf(rows, false), std::nullopt);
}

TEST(AccessPattern, LocalMemoryLiesLaneByLane) {
  EXPECT_EQ(localSectors(request(4, [](auto) { return 8; })).size(), 4u);
  EXPECT_EQ(localSectors(request(16, [](auto) { return 0; })).size(), 16u);
  EXPECT_EQ(localSectors(request(4, [](auto i) { return 4 * i; })).size(), 32u);
}

TEST(SectorUse, AddsUpInAnyOrder) {
  SectorUse first, second;
  first.read(1);
  first.read(2);
  first.read(2);
  first.write(900);
  second.read(1);
  second.read(70);
  second.write(900);
  SectorUse one = first, other = second;
  one.add(second);
  other.add(first);
  for (const SectorUse &both : {one, other}) {
    EXPECT_EQ(both.totals().once, 1u);  // 70
    EXPECT_EQ(both.totals().again, 2u); // 1 and 2
    EXPECT_EQ(both.totals().written, 1u);
  }
}

} // namespace
} // namespace kiln::sim
