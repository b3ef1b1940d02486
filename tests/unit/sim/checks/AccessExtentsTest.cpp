// AccessExtents: whose accesses may wait, and whose no longer.
#include "sim/clocks/AccessExtents.h"

#include <gtest/gtest.h>

namespace kiln::sim {

using Kind = AccessExtents::Kind;
using Answer = AccessExtents::Answer;

TEST(AccessExtents, LetsReadsWaitUntilSomebodyWritesThere) {
  AccessExtents extents;
  EXPECT_EQ(extents.note(1, Kind::reads, {1000, 2000}), Answer::defer);
  EXPECT_EQ(extents.note(2, Kind::direct, {2000, 2004}), Answer::touch);
  EXPECT_EQ(extents.note(1, Kind::reads, {1900, 2000}), Answer::defer);
  EXPECT_EQ(extents.note(2, Kind::direct, {1996, 2000}), Answer::touchBehind);
  EXPECT_TRUE(extents.hasFallen(1));
  EXPECT_FALSE(extents.hasFallen(2));
  extents.settle();
  EXPECT_EQ(extents.note(1, Kind::reads, {1000, 1004}), Answer::touch);
}

TEST(AccessExtents, LooksAtWhatWasWrittenBefore) {
  AccessExtents extents;
  EXPECT_EQ(extents.note(2, Kind::direct, {1 << 20, (1 << 20) + 4}),
            Answer::touch);
  EXPECT_EQ(extents.note(1, Kind::reads, {0, 4}), Answer::defer);
  // Somewhere between the first and the last byte.
  EXPECT_EQ(extents.note(1, Kind::reads, {2 << 20, (2 << 20) + 4}),
            Answer::touchBehind);
  EXPECT_TRUE(extents.hasFallen(1));
}

TEST(AccessExtents, HoldsAtomicsAgainstAllButTheirLike) {
  AccessExtents extents;
  EXPECT_EQ(extents.note(1, Kind::atomics, {0, 400}), Answer::defer);
  EXPECT_EQ(extents.note(2, Kind::atomics, {0, 400}), Answer::defer);
  EXPECT_EQ(extents.note(3, Kind::reads, {400, 800}), Answer::defer);
  EXPECT_EQ(extents.note(4, Kind::directReads, {500, 504}), Answer::touch);
  EXPECT_EQ(extents.note(3, Kind::reads, {396, 400}), Answer::touchBehind);
  // Those on the same bytes fall together.
  EXPECT_TRUE(extents.hasFallen(1));
  EXPECT_TRUE(extents.hasFallen(2));
  EXPECT_TRUE(extents.hasFallen(3));
}

TEST(AccessExtents, KnowsWhoMayCollideSinceSomethingFell) {
  AccessExtents extents;
  // Their rooms overlap.
  EXPECT_EQ(extents.note(1, Kind::atomics, {0, 4}), Answer::defer);
  EXPECT_EQ(extents.note(2, Kind::atomics, {1000, 1004}), Answer::defer);
  EXPECT_EQ(extents.note(3, Kind::direct, {0, 4}), Answer::touchBehind);
  extents.settle();
  EXPECT_EQ(extents.note(1, Kind::atomics, {500, 504}), Answer::touch);
  EXPECT_EQ(extents.note(2, Kind::atomics, {500, 504}), Answer::touchBehind);
}

TEST(AccessExtents, TellsSoManyInstructionsApart) {
  AccessExtents extents;
  for (std::uint32_t op = 0; op < 400; ++op)
    extents.note(op, Kind::direct, {op * 1000, op * 1000 + 4});
  EXPECT_EQ(extents.note(1000, Kind::reads, {399000, 399004}), Answer::touch);
}

} // namespace kiln::sim
