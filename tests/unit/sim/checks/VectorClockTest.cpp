// OrderClock: joining what is known, and what lanes hand to each other.
#include "sim/clocks/LaneClocks.h"

#include <gtest/gtest.h>

namespace kiln::sim {

TEST(Epoch, CoversAllLanesOrSomeOfThem) {
  Epoch known{.all = 4, .some = 9, .mask = 0b11};
  EXPECT_TRUE(known.covers(4, kAllLanes));
  EXPECT_FALSE(known.covers(5, kAllLanes));
  EXPECT_TRUE(known.covers(9, 0b10));
  EXPECT_FALSE(known.covers(9, 0b110));
  EXPECT_FALSE(known.covers(10, 0b1));
}

TEST(Epoch, AJoinLosesNothing) {
  Epoch a{.all = 4, .some = 9, .mask = 0b01}, b{.all = 6, .some = 8, .mask = 2};
  a.join(b);
  EXPECT_EQ(a, (Epoch{.all = 6, .some = 9, .mask = 0b11}));
  a.join({.all = 9});
  EXPECT_EQ(a, (Epoch{.all = 9})) << "some lanes are no more than all";
  a.join({.some = 12, .mask = kAllLanes});
  EXPECT_EQ(a, (Epoch{.all = 12})) << "all lanes are all";
}

TEST(Clock, LearnsPerViewAndComponent) {
  Clock clock;
  clock.learn(View::generic, 3, {.all = 5});
  EXPECT_TRUE(clock.find(View::generic, 3)->covers(5, 1));
  EXPECT_FALSE(clock.find(View::completed, 3));
  EXPECT_FALSE(clock.find(View::generic, 4));
  EXPECT_FALSE(clock.find(View::generic, 3 + (1u << kBlockShift)))
      << "another cluster's";
}

TEST(Clock, CopiesShareUntilTheyChange) {
  Clock clock;
  clock.learn(View::generic, 3, {.all = 5});
  Clock copy = clock;
  EXPECT_TRUE(copy.isSame(clock));
  copy.learn(View::generic, 3, {.all = 4});
  EXPECT_TRUE(copy.isSame(clock)) << "nothing new";
  copy.learn(View::generic, 3, {.all = 6});
  EXPECT_FALSE(copy.isSame(clock));
  EXPECT_FALSE(clock.find(View::generic, 3)->covers(6, 1));
  clock.join(copy);
  EXPECT_TRUE(clock.find(View::generic, 3)->covers(6, 1));
}

TEST(Clock, SharesWhatItJoinsAndIsPartOf) {
  Clock clock, other;
  clock.learn(View::generic, 3, {.all = 5});
  other.learn(View::generic, 3, {.all = 6});
  other.learn(View::completed, 4, {.all = 1});
  clock.join(other);
  EXPECT_TRUE(clock.isSame(other));
}

TEST(Clock, AVersionStandsForWhatIsKnown) {
  Clock clock, other;
  other.learn(View::generic, 3, {.all = 5});
  std::uint64_t version = other.version();
  clock.join(other);
  other.learn(View::generic, 3, {.all = 4});
  EXPECT_EQ(other.version(), version) << "nothing new";
  Clock copy = other;
  EXPECT_EQ(copy.version(), version);
  copy.learn(View::generic, 3, {.all = 7});
  EXPECT_NE(copy.version(), version);
  other.learn(View::generic, 3, {.all = 6});
  EXPECT_NE(other.version(), copy.version());
  clock.join(other);
  EXPECT_TRUE(clock.find(View::generic, 3)->covers(6, 1))
      << "what was learnt since the last time";
  clock.join(copy);
  EXPECT_TRUE(clock.find(View::generic, 3)->covers(7, 1));
}

TEST(Clock, JoinsBlocksOfOtherClusters) {
  Component far = 7u << kBlockShift | 1;
  Clock clock, other;
  clock.learn(View::generic, 1, {.all = 2});
  other.learn(View::generic, far, {.all = 3});
  clock.join(other);
  EXPECT_TRUE(clock.find(View::generic, 1)->covers(2, 1));
  EXPECT_TRUE(clock.find(View::generic, far)->covers(3, 1));
}

TEST(Clock, WhatIsCompletedCanBeHandedOverAlone) {
  Clock clock, other;
  other.learn(View::generic, 1, {.all = 3});
  other.learn(View::completed, 1, {.all = 3});
  clock.joinOnly(View::completed, other);
  EXPECT_TRUE(clock.find(View::completed, 1)->covers(3, 1));
  EXPECT_FALSE(clock.find(View::generic, 1));
}

TEST(Clock, AProxyFenceFillsOneAsyncView) {
  Clock clock;
  clock.learn(View::generic, 1, {.all = 3});
  clock.fenceProxy(View::asyncShared);
  EXPECT_TRUE(clock.find(View::asyncShared, 1)->covers(3, 1));
  EXPECT_FALSE(clock.find(View::asyncGlobal, 1));
}

/// Two warps, each at some time.
struct TwoWarps {
  WarpClock first{.lanes = 0, .started = kAllLanes, .now = 5};
  WarpClock second{.lanes = 1, .started = kAllLanes, .now = 7};
  LaneClocks a{kAllLanes}, b{kAllLanes};
};

/// Whether lane 0 of `clocks` knows strictly what lane `lane` of a component
/// did.
static bool knows(const LaneClocks &clocks, View view, Component component,
                  std::uint32_t time, int lane) {
  bool isKnown = false;
  clocks.forEachPart(1, [&](LaneMask, const Knowledge &knowledge) {
    const Epoch *known = knowledge.clock.find(view, component);
    isKnown = known && known->covers(time, LaneMask(1) << lane);
  });
  return isKnown;
}

TEST(LaneClocks, ABarrierHandsOverEveryLane) {
  TwoWarps warps;
  SyncPoint round;
  warps.a.release(round, warps.first, kAllLanes);
  warps.b.acquire(round, warps.second, kAllLanes);
  EXPECT_TRUE(knows(warps.b, View::generic, 0, 5, 31));
  EXPECT_FALSE(knows(warps.b, View::generic, 0, 6, 31));
  EXPECT_FALSE(knows(warps.b, View::asyncShared, 0, 5, 31)) << "no fence";
}

TEST(LaneClocks, OneLaneSpeaksForItselfAloneByTheText) {
  TwoWarps warps;
  SyncPoint phase;
  warps.a.release(phase, warps.first, 1);
  warps.b.acquire(phase, warps.second, kAllLanes);
  EXPECT_TRUE(knows(warps.b, View::generic, 0, 5, 0));
  EXPECT_FALSE(knows(warps.b, View::generic, 0, 5, 1));
  const Epoch *known = warps.b.deFacto().clock.find(View::generic, 0);
  EXPECT_TRUE(known->covers(5, kAllLanes)) << "in practice for all";
}

TEST(LaneClocks, AWarpBarrierLetsOneLaneSpeakForAll) {
  TwoWarps warps;
  SyncPoint phase;
  warps.a.fenceProxy(View::asyncShared, warps.first, kAllLanes);
  warps.a.syncLanes(kAllLanes, warps.first);
  warps.a.release(phase, warps.first, 1);
  warps.b.acquire(phase, warps.second, kAllLanes);
  EXPECT_TRUE(knows(warps.b, View::generic, 0, 5, 31));
  EXPECT_TRUE(knows(warps.b, View::asyncShared, 0, 5, 31))
      << "their fences too";
}

TEST(LaneClocks, AProxyFenceIsEachLanesOwn) {
  TwoWarps warps;
  SyncPoint phase;
  warps.a.fenceProxy(View::asyncShared, warps.first, kAllLanes);
  warps.a.release(phase, warps.first, 1);
  warps.b.acquire(phase, warps.second, kAllLanes);
  EXPECT_TRUE(knows(warps.b, View::asyncShared, 0, 5, 0));
  EXPECT_FALSE(knows(warps.b, View::asyncShared, 0, 5, 1));
}

TEST(LaneClocks, LanesThatPartAndMeetKnowEachOtherInPracticeAlone) {
  TwoWarps warps;
  LaneClocks other = warps.a.split(0xffff0000, warps.first);
  EXPECT_EQ(warps.a.lanes(), 0xffffu);
  warps.first.now = 9;
  auto deFacto = [&](const LaneClocks &clocks, LaneMask lanes) {
    return clocks.deFacto().coversOwn(View::generic, 9, lanes, clocks.lanes());
  };
  EXPECT_FALSE(deFacto(warps.a, 1u << 20)) << "apart";
  warps.a.meet(std::move(other), warps.first);
  EXPECT_EQ(warps.a.lanes(), kAllLanes);
  EXPECT_TRUE(deFacto(warps.a, 1u << 20));
  warps.a.forEachPart(1, [&](LaneMask, const Knowledge &knowledge) {
    EXPECT_FALSE(knowledge.coversOwn(View::generic, 9, 1u << 20, 1));
    EXPECT_TRUE(knowledge.coversOwn(View::generic, 9, 1, 1)) << "itself";
  });
}

TEST(LaneClocks, WhatOneLaneLearnsTheOthersLearnInPracticeAlone) {
  TwoWarps warps;
  SyncPoint phase;
  warps.a.release(phase, warps.first, kAllLanes);
  LaneClocks elected = warps.b.split(0b10, warps.second);
  elected.acquire(phase, warps.second, 0b10);
  warps.b.meet(std::move(elected), warps.second);
  EXPECT_FALSE(knows(warps.b, View::generic, 0, 5, 0));
  EXPECT_TRUE(warps.b.deFacto().clock.find(View::generic, 0));
  warps.b.syncLanes(kAllLanes, warps.second);
  EXPECT_TRUE(knows(warps.b, View::generic, 0, 5, 0));
}

TEST(LaneClocks, AFenceMakesReadyAndMakesKnown) {
  TwoWarps warps;
  warps.a.fence(Scope::gpu, warps.first, kAllLanes);
  const auto &ready = warps.a.deFacto().fenced;
  ASSERT_TRUE(ready[0] && ready[2]);
  EXPECT_TRUE(ready[2]->find(View::generic, 0)->covers(5, kAllLanes));
  warps.b.deFacto().seen[2] = *ready[2];
  warps.b.fence(Scope::cta, warps.second, kAllLanes);
  EXPECT_FALSE(warps.b.deFacto().clock.find(View::generic, 0))
      << "a fence of .cta does not reach";
  warps.b.fence(Scope::gpu, warps.second, kAllLanes);
  EXPECT_TRUE(warps.b.deFacto().clock.find(View::generic, 0));
}

TEST(LaneClocks, BarriersCarryFencesOn) {
  TwoWarps warps;
  SyncPoint round;
  warps.a.fence(Scope::gpu, warps.first, kAllLanes);
  warps.a.release(round, warps.first, kAllLanes);
  warps.b.acquire(round, warps.second, kAllLanes);
  const auto &ready = warps.b.deFacto().fenced[2];
  ASSERT_TRUE(ready);
  EXPECT_TRUE(ready->find(View::generic, 0)->covers(5, kAllLanes));
}

} // namespace kiln::sim
