// WarpInstructions: lanes that exchange values and vote.
#include "unit/sim/units/RunLanes.h"

namespace kiln::sim {

/// Lane i holds 100 + i.
static void number(RunLanes &lanes) {
  for (int lane = 0; lane < kLanes; ++lane)
    lanes.set("%a", lane, 100 + lane);
}

TEST(WarpInstructions, ShufflesInAllModes) {
  RunLanes lanes(".reg .b32 %a, %u, %n, %x, %i; .reg .pred %p, %q;",
                 "shfl.sync.up.b32 %u|%p, %a, 3, 0, -1;"
                 "shfl.sync.down.b32 %n|%q, %a, 5, 31, -1;"
                 "shfl.sync.bfly.b32 %x, %a, 16, 31, -1;"
                 "shfl.sync.idx.b32 %i, %a, 9, 31, -1;");
  number(lanes);
  lanes.run();
  for (int lane = 0; lane < kLanes; ++lane) {
    EXPECT_EQ(lanes.get("%u", lane), 100u + (lane >= 3 ? lane - 3 : lane));
    EXPECT_EQ(lanes.get("%n", lane), 100u + (lane < 27 ? lane + 5 : lane));
    EXPECT_EQ(lanes.get("%x", lane), 100u + (lane ^ 16));
    EXPECT_EQ(lanes.get("%i", lane), 109u);
  }
  EXPECT_EQ(lanes.pred("%p"), 0xfffffff8u);
  EXPECT_EQ(lanes.pred("%q"), 0x07ffffffu);
}

TEST(WarpInstructions, ReducesFloats) {
  RunLanes lanes(".reg .f32 %a, %max, %min, %abs, %nan;",
                 "redux.sync.max.f32 %max, %a, -1;"
                 "redux.sync.min.f32 %min, %a, -1;"
                 "redux.sync.max.abs.f32 %abs, %a, -1;"
                 "redux.sync.max.NaN.f32 %nan, %a, -1;");
  for (int lane = 0; lane < kLanes; ++lane)
    lanes.set("%a", lane, std::bit_cast<std::uint32_t>(float(10 - lane)));
  lanes.set("%a", 0, 0x7fc00001); // a NaN, which loses against numbers
  lanes.run();
  EXPECT_EQ(lanes.get("%max", 3), std::bit_cast<std::uint32_t>(9.0f));
  EXPECT_EQ(lanes.get("%min", 31), std::bit_cast<std::uint32_t>(-21.0f));
  EXPECT_EQ(lanes.get("%abs", 0), std::bit_cast<std::uint32_t>(21.0f));
  EXPECT_EQ(lanes.get("%nan", 5), 0x7fffffffu);
}

TEST(WarpInstructions, ShufflesWithinSegments) {
  // Segments of 8 lanes: segment mask 0x18, clamp 7.
  RunLanes lanes(".reg .b32 %a, %n, %i;",
                 "shfl.sync.down.b32 %n, %a, 1, 0x1807, -1;"
                 "shfl.sync.idx.b32 %i, %a, 2, 0x1807, -1;");
  number(lanes);
  lanes.run();
  for (int lane = 0; lane < kLanes; ++lane) {
    EXPECT_EQ(lanes.get("%n", lane), 100u + (lane % 8 == 7 ? lane : lane + 1));
    EXPECT_EQ(lanes.get("%i", lane), 100u + lane / 8 * 8 + 2);
  }
}

TEST(WarpInstructions, ShuffleCarriesPoison) {
  RunLanes lanes(".reg .b32 %a, %d;", "shfl.sync.bfly.b32 %d, %a, 1, 31, -1;");
  number(lanes);
  lanes.setPoisonBits("%a", 2, 0xff00).run();
  EXPECT_EQ(lanes.get("%d", 0), 101u);
  EXPECT_EQ(lanes.poison("%d"), 0b1000u);
  EXPECT_EQ(lanes.poisonBits("%d", 3), 0xff00u);
}

TEST(WarpInstructions, Votes) {
  RunLanes lanes(".reg .b32 %b; .reg .pred %p, %all, %any, %uni, %none;",
                 "vote.sync.all.pred %all, %p, -1;"
                 "vote.sync.any.pred %any, %p, -1;"
                 "vote.sync.uni.pred %uni, !%p, -1;"
                 "vote.sync.ballot.b32 %b, %p, -1;");
  lanes.setPred("%p", 0x0000f00f).run();
  EXPECT_EQ(lanes.pred("%all"), 0u);
  EXPECT_EQ(lanes.pred("%any"), kAllLanes);
  EXPECT_EQ(lanes.pred("%uni"), 0u);
  EXPECT_EQ(lanes.get("%b", 31), 0x0000f00fu);
}

TEST(WarpInstructions, MatchesAndReduces) {
  RunLanes lanes(".reg .b32 %a, %m, %all, %s, %lo, %hi, %x; .reg .pred %p;",
                 "match.any.sync.b32 %m, %a, -1;"
                 "match.all.sync.b32 %all|%p, %a, -1;"
                 "redux.sync.add.u32 %s, %a, -1;"
                 "redux.sync.min.s32 %lo, %a, -1;"
                 "redux.sync.max.u32 %hi, %a, -1;"
                 "redux.sync.xor.b32 %x, %a, -1;");
  std::uint32_t sum = 0, exclusive = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    std::uint32_t value = std::uint32_t(lane % 4 - 1);
    lanes.set("%a", lane, value);
    sum += value;
    exclusive ^= value;
  }
  lanes.run();
  EXPECT_EQ(lanes.get("%m", 5), 0x22222222u);
  EXPECT_EQ(lanes.get("%all", 5), 0u);
  EXPECT_EQ(lanes.pred("%p"), 0u);
  EXPECT_EQ(lanes.get("%s", 9), sum);
  EXPECT_EQ(lanes.get("%lo", 9), 0xffffffffu);
  EXPECT_EQ(lanes.get("%hi", 9), 0xffffffffu);
  EXPECT_EQ(lanes.get("%x", 9), exclusive);
}

TEST(WarpInstructions, ElectsTheLowestLane) {
  RunLanes lanes(".reg .b32 %d, %m; .reg .pred %p;",
                 "activemask.b32 %m; elect.sync %d|%p, -1;"
                 "bar.warp.sync -1;");
  lanes.run();
  EXPECT_EQ(lanes.pred("%p"), 1u);
  EXPECT_EQ(lanes.get("%d", 17), 0u);
  EXPECT_EQ(lanes.get("%m", 17), kAllLanes);
  EXPECT_TRUE(lanes.warp().isDone());
}

TEST(WarpInstructions, WaitsForLanesThatAreNamed) {
  RunLanes lanes(".reg .b32 %d; .reg .pred %p;", "@%p bar.warp.sync -1;");
  lanes.setPred("%p", 0xffff).run();
  EXPECT_FALSE(lanes.warp().isDone());
  const WaitReason &wait = lanes.warp().groups().front().wait;
  EXPECT_EQ(wait.kind, WaitReason::Kind::lanes);
  EXPECT_EQ(wait.object, 0xffff0000u) << "who is missing";
}

TEST(WarpInstructions, RefusesByReason) {
  expectRefusals({
      {"shfl.up.b32 %r, %r, 1, 0;", "shfl.up needs .sync"},
      {"vote.all.pred %p, %p;", "vote.all needs .sync"},
      {"redux.sync.add.f32 %r, %r, -1;",
       "the modifier .f32 is not known for redux"},
  });
}

} // namespace kiln::sim
