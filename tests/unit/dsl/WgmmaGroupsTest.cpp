// WgmmaGroups: who has landed by which wait, along branches and loops.
#include "dsl/tensorcore/WgmmaGroups.h"

#include <gtest/gtest.h>

using namespace kiln;

namespace {
struct Groups : testing::Test {
  WgmmaGroups groups;
  WgmmaGroups::Id s = groups.add(), acc = groups.add();

  void multiply(WgmmaGroups::Id id) {
    groups.issue(id, {"kernel.cpp", ++line});
    groups.commit();
  }
  void use(WgmmaGroups::Id id) { groups.use(id, {"kernel.cpp", ++line}); }
  unsigned line = 0;
};
} // namespace

TEST_F(Groups, AWaitLandsAllThatItCovers) {
  multiply(s);
  multiply(acc);
  EXPECT_EQ(groups.newer(s), 1);
  EXPECT_EQ(groups.newer(acc), 0);
  EXPECT_TRUE(groups.wait(2).empty());
  EXPECT_EQ(groups.wait(1), std::vector{s});
  EXPECT_FALSE(groups.isInFlight(s));
  EXPECT_TRUE(groups.isInFlight(acc));
  EXPECT_EQ(groups.wait(0), std::vector{acc});
}

TEST_F(Groups, TheLastProductOfAnAccumulatorCounts) {
  multiply(s);
  multiply(acc);
  multiply(s);
  EXPECT_EQ(groups.wait(1), std::vector{acc});
  EXPECT_EQ(groups.newer(s), 0);
}

TEST_F(Groups, WhatIsNotCommittedIsNotWaitedFor) {
  groups.issue(s, {"kernel.cpp", 1});
  EXPECT_EQ(groups.newer(s), WgmmaGroups::kOpen);
  EXPECT_TRUE(groups.wait(0).empty());
  groups.commit();
  EXPECT_EQ(groups.wait(0), std::vector{s});
}

TEST_F(Groups, PathsThatMeetKnowTheLeast) {
  multiply(s);
  {
    WgmmaGroups::Branch ways(groups);
    multiply(acc); // one way has a newer group, the other none
    ways.otherwise();
  }
  EXPECT_EQ(groups.newer(s), 0);
  EXPECT_EQ(groups.newer(acc), 0);
  {
    WgmmaGroups::Branch ways(groups);
    groups.wait(0); // on one way alone
  }
  EXPECT_TRUE(groups.isInFlight(s));
  {
    WgmmaGroups::Branch ways(groups);
    groups.wait(0);
    ways.otherwise();
    groups.wait(0);
  }
  EXPECT_FALSE(groups.isInFlight(s));
}

TEST_F(Groups, TheTurnBeforeLeavesItInFlight) {
  WgmmaGroups::Loop turns(groups);
  use(s);      // line 1
  multiply(s); // line 2
  auto conflict = turns.conflict();
  ASSERT_TRUE(conflict);
  EXPECT_EQ(conflict->id, s);
  EXPECT_EQ(conflict->use.line, 1u);
  EXPECT_EQ(conflict->product.line, 2u);
  EXPECT_EQ(conflict->newer, 0);
}

TEST_F(Groups, AWaitAnywhereInTheTurnWillDo) {
  for (bool isFirst : {true, false}) {
    WgmmaGroups::Loop turns(groups);
    if (isFirst)
      groups.wait(0);
    use(s);
    multiply(s);
    if (!isFirst)
      groups.wait(0);
    EXPECT_FALSE(turns.conflict());
  }
}

TEST_F(Groups, WaitsCountTheGroupsOfBothTurns) {
  // The wait comes after one more group than the turn before left: waiting for
  // all but one covers s, for all but two does not.
  for (int left : {1, 2}) {
    WgmmaGroups::Loop turns(groups);
    multiply(acc);
    groups.wait(left);
    use(s);
    multiply(s);
    EXPECT_EQ(turns.conflict().has_value(), left == 2);
    groups.wait(0);
  }
}

TEST_F(Groups, InnerLoopsAndBranchesMayNotRun) {
  WgmmaGroups::Loop outer(groups);
  {
    WgmmaGroups::Branch maybe(groups);
    WgmmaGroups::Loop inner(groups);
    groups.wait(0);
    EXPECT_FALSE(inner.conflict());
  }
  use(s);
  multiply(s);
  EXPECT_TRUE(outer.conflict());
}

TEST_F(Groups, ProductsOpenAtTheEndOfATurn) {
  WgmmaGroups::Loop turns(groups);
  groups.commit();
  groups.wait(0);
  use(s);
  groups.issue(s, {"kernel.cpp", 1});
  EXPECT_FALSE(turns.conflict()) << "the next turn commits and waits";
}

TEST_F(Groups, RolesDoNotWaitForEachOther) {
  {
    WgmmaGroups::RoleScope role(groups, 0);
    multiply(s);
  }
  {
    WgmmaGroups::RoleScope role(groups, 1);
    multiply(acc);
    EXPECT_EQ(groups.newer(s), 0);
    EXPECT_EQ(groups.wait(0), std::vector{acc});
  }
  EXPECT_EQ(groups.wait(0), std::vector{s}) << "all warpgroups wait here";
}
