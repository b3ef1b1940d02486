// LateLoad: reads count as accesses where their value is used.
#include "unit/sim/checks/RunIds.h"

#include <algorithm>

namespace kiln::sim {

/// Threads count in a shared word that others may have read before.
static std::string countBehind(const std::string &use, int reading) {
  return fmt::format("setp.ne.u32 %p0, %t, 0;"
                     "@!%p0 st.shared.u32 [%s], 0;"
                     "bar.sync 0;"
                     "setp.ge.u32 %p2, %t, {};"
                     "setp.lt.u32 %p4, %t, {};"
                     "ld.shared.u32 %r1, [%s];"
                     "{}"
                     "@%p3 bra done;"
                     "atom.shared.add.u32 %r2, [%s], 1;"
                     "done:",
                     reading, reading, use);
}

TEST(LateLoad, CountsWhereItsValueIsUsed) {
  std::string compare = "setp.gt.s32 %p1, %r1, 100;";
  for (const std::string &use :
       {compare + "and.pred %p3, %p1, %p2;",
        compare + "and.pred %p3, %p2, %p1;",
        compare + "or.pred %p3, %p4, %p1; not.pred %p3, %p3;",
        compare + "and.pred %p3, %p1, !%p4;",
        std::string("setp.gt.and.s32 %p3, %r1, 100, %p2;"),
        std::string("setp.lt.or.s32 %p3, %r1, 0, %p4; not.pred %p3, %p3;"),
        std::string("selp.u32 %r3, %r1, 0, %p2; setp.gt.s32 %p3, %r3, 100;"),
        std::string("selp.u32 %r3, 0, %r1, %p4; setp.gt.s32 %p3, %r3, 100;"),
        // Behind a branch that only some lanes take, with arithmetic before.
        "setp.lt.s32 %p6, %r1, -1; @%p4 bra skip; add.s32 %r3, %r1, 1;"
        "st.shared.u32 [%s+64], %r3; skip: " +
            std::string("setp.ne.u32 %p3, %t, %t;"),
        std::string("add.s32 %r5, %r1, 7; bra next; next: setp.ne.u32 %p3, %t, "
                    "%t; @%p4 bra skip; setp.gt.s32 %p5, %r5, 100; @%p5 bra "
                    "done; skip:"),
        // By a store under a predicate.
        std::string("@%p2 st.shared.u32 [%s+64], %r1; setp.ne.u32 %p3, %t, "
                    "%t;"),
        // Before it may meet others, though the use is further on.
        std::string("setp.ne.u32 %p3, %t, %t; @%p4 bra skip; bar.warp.sync "
                    "0xffffffff; st.shared.u32 [%s+64], %r1; skip:")}) {
    SCOPED_TRACE(use);
    // Nobody uses it; the second warp does.
    expectIds(countBehind(use, 64), {}, {1, 1, 1}, 64);
    RunKernel run(countBehind(use, 32));
    run.config.block = {64, 1, 1};
    Ids ids = idsOf(run);
    EXPECT_TRUE(std::find(ids.begin(), ids.end(), "race") != ids.end());
  }
}

TEST(LateLoad, CountsAlwaysWhereMoreIsDoneWithIt) {
  auto isRace = [](const std::string &use) {
    RunKernel run(countBehind(use, 64));
    run.config.block = {64, 1, 1};
    Ids ids = idsOf(run);
    return std::find(ids.begin(), ids.end(), "race") != ids.end();
  };
  std::string masked = "setp.gt.s32 %p1, %r1, 100; and.pred %p3, %p1, %p2;";
  EXPECT_FALSE(isRace(masked));
  EXPECT_FALSE(isRace(masked + "add.u32 %r4, %r1, 1;"));
  EXPECT_TRUE(isRace(masked + "st.shared.u32 [%s+64], %r1;"));
  EXPECT_TRUE(isRace(masked + "selp.u32 %r4, 1, 2, %p1;"
                              "st.shared.u32 [%s+64], %r4;"));
  // A branch goes by it in the lanes that do not take it, too.
  EXPECT_TRUE(isRace("setp.gt.s32 %p3, %r1, 100;"));
  // Behind a barrier it is another time.
  EXPECT_TRUE(isRace("bar.warp.sync 0xffffffff;" + masked));
  EXPECT_FALSE(isRace("bra next; next: " + masked));
  // What no instruction uses at all is meant.
  EXPECT_TRUE(isRace("setp.ne.u32 %p3, %t, %t;"));
}

TEST(LateLoad, IsFollowedThroughALoop) {
  // A round reads and goes by it where its thread is of those that count.
  auto loop = [](int reading) {
    return countBehind(fmt::format("mov.u32 %r7, 0;"
                                   "round: ld.shared.u32 %r8, [%s];"
                                   "setp.ge.u32 %p5, %t, {};"
                                   "@!%p5 bra skip;"
                                   "st.shared.u32 [%s+64], %r8;"
                                   "skip: add.u32 %r7, %r7, 1;"
                                   "setp.lt.u32 %p5, %r7, 3;"
                                   "@%p5 bra round;"
                                   "setp.ne.u32 %p3, %t, %t;"
                                   "and.pred %p3, %p3, %p3;"
                                   "sub.u32 %r1, %r1, %r1;",
                                   reading),
                       64);
  };
  auto hasRace = [](const std::string &text) {
    // %r1 of countBehind itself is for nothing here.
    std::string kernel = text;
    std::string load = "ld.shared.u32 %r1, [%s];";
    kernel.replace(kernel.find(load), load.size(), "mov.u32 %r1, 0;");
    RunKernel run(kernel);
    run.config.block = {64, 1, 1};
    Ids ids = idsOf(run);
    return std::find(ids.begin(), ids.end(), "race") != ids.end();
  };
  EXPECT_FALSE(hasRace(loop(64)));
  EXPECT_TRUE(hasRace(loop(32)));
}

TEST(LateLoad, WasReadBeforeItsWarpWentOn) {
  // The lanes run together until one of them stores: no error, as it was.
  for (const char *way : {"@%p0 bra reads; st.shared.u32 [%s], 7; bra done;"
                          "reads: st.shared.u32 [%r3+64], %r1;",
                          "@!%p0 bra writes; st.shared.u32 [%r3+64], %r1;"
                          "bra done; writes: st.shared.u32 [%s], 7;"}) {
    SCOPED_TRACE(way);
    std::string text = "setp.ne.u32 %p0, %t, 0;"
                       "@!%p0 st.shared.u32 [%s], 0;"
                       "bar.sync 0;"
                       "shl.b32 %r3, %t, 2; add.u32 %r3, %r3, %s;"
                       "ld.shared.u32 %r1, [%s];" +
                       std::string(way) + "done:";
    for (Interleaving order : kOrders) {
      RunKernel run(text);
      run.config.interleaving = order;
      for (const std::string &id : idsOf(run))
        EXPECT_EQ(id, "warp-convergence");
    }
  }
}

TEST(LateLoad, OfAVectorCountsByItsElements) {
  // Thread 0 counts at 4; the others read 8 bytes and use those from 0 on.
  auto kernel = [](const std::string &elements, const std::string &use) {
    return "setp.ne.u32 %p0, %t, 0;"
           "@!%p0 st.shared.u64 [%s], 0;"
           "bar.sync 0;"
           "setp.ge.u32 %p2, %t, 64;"
           "@!%p0 bra first;"
           "ld.shared.v2.u32 {" +
           elements + "}, [%s];" + use +
           "bra done;"
           "first: st.shared.u32 [%s+4], 1;"
           "done:";
  };
  auto expectRace = [&](const std::string &text, bool isExpected) {
    SCOPED_TRACE(text);
    expectIds(text, isExpected ? Ids{"race"} : Ids{}, {1, 1, 1}, 64);
  };
  std::string store = "shl.b32 %r3, %t, 2; add.u32 %r3, %r3, %s;";
  expectRace(kernel("%r1, %r2", store + "st.shared.u32 [%r3+64], %r1;"), false);
  expectRace(kernel("%r1, _", store + "st.shared.u32 [%r3+64], %r1;"), false);
  expectRace(kernel("%r1, %r2", store + "st.shared.u32 [%r3+64], %r1;"
                                        "@%p2 st.shared.u32 [%r3+128], %r2;"),
             false);
}

TEST(LateLoad, OfAVectorIsARaceWhereTheElementIsUsed) {
  std::string text = "setp.ne.u32 %p0, %t, 0;"
                     "setp.ge.u32 %p2, %t, 32;"
                     "@!%p0 st.shared.u64 [%s], 0;"
                     "bar.sync 0;"
                     "@!%p0 bra first;"
                     "ld.shared.v2.u32 {%r1, %r2}, [%s];"
                     "shl.b32 %r3, %t, 2; add.u32 %r3, %r3, %s;"
                     "st.shared.u32 [%r3+64], %r1;"
                     "@%p2 st.shared.u32 [%r3+320], %r2;"
                     "bra done;"
                     "first: st.shared.u32 [%s+4], 1;"
                     "done:";
  expectIds(text, {"race"}, {1, 1, 1}, 64);
}

} // namespace kiln::sim
