// RaceVerdicts: how two accesses that meet are graded, and what is silent.
#include "unit/sim/checks/RunIds.h"

#include <algorithm>

namespace kiln::sim {

namespace {
const std::string kFirst = "setp.ne.u32 %p0, %t, 0;"
                           "mov.u32 %r0, %ctaid.x;";
const std::string kCounts = "red.global.add.u32 [%in], 1;";
} // namespace

// Lanes with consecutive or equal addresses are looked at as one access.
TEST(RaceOfWarps, IsFoundWhereLanesAreAlike) {
  auto hasRace = [](const std::string &instructions) {
    RunKernel run(instructions);
    run.config.block = {64, 1, 1};
    Ids ids = idsOf(run);
    return std::find(ids.begin(), ids.end(), "race") != ids.end();
  };
  const std::string store = "st.shared.u32 [%r1], %t;", meet = "bar.sync 0;";
  const std::string begin = "shl.b32 %r1, %t, 2; add.u32 %r1, %r1, %s;"
                            "xor.b32 %r2, %t, 32; shl.b32 %r2, %r2, 2;"
                            "add.u32 %r2, %r2, %s;" +
                            store;
  for (const std::string &load :
       {std::string("ld.shared.u32 %r3, [%r2];"),
        std::string("ld.shared.u32 %r3, [%s+128];"),
        std::string("ld.shared.u16 %r3, [%s+2];")}) {
    SCOPED_TRACE(load);
    EXPECT_TRUE(hasRace(begin + load));
    EXPECT_FALSE(hasRace(begin + meet + load));
    EXPECT_TRUE(hasRace(begin + meet + load + store));
    EXPECT_FALSE(hasRace(begin + meet + load + meet + store));
  }
  // A thread's own word is nobody else's.
  EXPECT_FALSE(hasRace(begin + "ld.shared.u32 %r3, [%r1];" + store));
}

TEST(SameValue, OfTwoCtasIsAWarning) {
  std::string store = kFirst + "@!%p0 st.global.u32 [%out], 7;";
  expectIds(store, {"same-value"}, {4, 1, 1});
  // Whether they could talk to each other makes no difference.
  expectIds(store + kCounts, {"same-value"}, {4, 1, 1});
}

TEST(SameValue, OfManyPlacesIsAWarning) {
  std::string store = "mul.wide.u32 %x0, %t, 8;"
                      "add.u64 %x0, %x0, %out;"
                      "mul.lo.u32 %r1, %t, 3;"
                      "st.global.v2.u32 [%x0], {%r1, %t};";
  expectIds(store, {"same-value"}, {3, 1, 1});
  expectIds(store + kCounts, {"same-value"}, {3, 1, 1});
}

TEST(SameValue, IsNoneWhereOneByteDiffers) {
  std::string store = kFirst + "@!%p0 st.global.u32 [%out], %r0;";
  expectIds(store, {"race"}, {2, 1, 1});
  expectIds(store + kCounts, {"race"}, {2, 1, 1});
  // What stands there already is as much a value as any.
  store = kFirst + "setp.eq.u32 %p1, %r0, 2;"
                   "@%p1 mov.u32 %r0, 5;"
                   "@!%p1 mov.u32 %r0, 0;"
                   "@!%p0 st.global.u32 [%out], %r0;";
  expectIds(store, {"same-value", "race"}, {3, 1, 1});
}

TEST(SameValue, IsThatOfTheLastLane) {
  auto storeOf = [](const std::string &predicate) {
    // One lane stores its CTA's number, the others 7.
    return "mov.u32 %r0, %ctaid.x;" + predicate +
           "selp.u32 %r1, %r0, 7, %p1;"
           "st.global.u32 [%out], %r1;";
  };
  expectIds(storeOf("setp.eq.u32 %p1, %t, 31;"), {"race"}, {2, 1, 1});
  expectIds(storeOf("setp.eq.u32 %p1, %t, 0;"), {"same-value"}, {2, 1, 1});
}

TEST(SameValue, IsNoneWhereAnotherCtaReads) {
  std::string both = kFirst + "@!%p0 st.global.u32 [%out], 7;"
                              "ld.global.u32 %r1, [%out];";
  expectIds(both, {"same-value", "race"}, {2, 1, 1}, 1);
}

TEST(SameValue, IsOneOfMatricesToo) {
  std::string store = "mov.u32 %r0, 7;"
                      "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%s], {%r0};";
  expectIds(store, {"same-value"}, {1, 1, 1}, 64);
  expectIds("and.b32 %r1, %t, 7;"
            "shl.b32 %r1, %r1, 4;"
            "add.u32 %r1, %r1, %s;"
            "shr.u32 %r0, %t, 5;"
            "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r1], {%r0};",
            {"race"}, {1, 1, 1}, 64);
}

TEST(SameValue, DoesNotDependOnTheHostsThreads) {
  for (std::size_t threads : {1, 4}) {
    RunKernel run(kFirst + "@!%p0 st.global.u32 [%out], 7;"
                           "add.u64 %x0, %out, 64;"
                           "@!%p0 st.global.u32 [%x0], %r0;");
    run.config.grid = {64, 1, 1};
    run.config.threads = static_cast<int>(threads);
    EXPECT_EQ(idsOf(run), (Ids{"same-value", "race"}));
  }
}

TEST(WarpConvergence, IsNoneBetweenVolatileAccesses) {
  auto exchange = [](const std::string &store) {
    return "shl.b32 %r0, %t, 2;"
           "add.u32 %r0, %r0, %s;" +
           store + ".shared.u32 [%r0], %t;" + store +
           ".shared.u32 [%r0+128], %t;"
           "ld.volatile.shared.u32 %r1, [%r0+64];";
  };
  expectIds(exchange("st.volatile"), {});
  expectIds(exchange("st"), {"warp-convergence"});
}

/// A slot that lane 0 waits for, and others of its warp read.
static const std::string kWaitByOne =
    "setp.ne.u32 %p0, %t, 0;"
    "@%p0 bra made;"
    "mbarrier.init.shared.b64 [%bar], 1;"
    "made: bar.sync 0;"
    "setp.ge.u32 %p1, %t, 32;"
    "@%p1 bra producer;"
    "@%p0 bra met;"
    "again: mbarrier.try_wait.parity.shared.b64 %p2, [%bar], 0;"
    "@!%p2 bra again;"
    "met: @!%p0 bra done;"
    "ld.shared.u32 %r1, [%s];"
    "bra done;"
    "producer: setp.ne.u32 %p3, %t, 32;"
    "@%p3 bra done;"
    "st.shared.u32 [%s], 5;"
    "mbarrier.arrive.shared.b64 _, [%bar];"
    "done:";

TEST(WarpConvergence, IsWhatIsMissingWhereAnotherLaneHasWaited) {
  expectIds(kWaitByOne, {"warp-convergence"}, {1, 1, 1}, 64);
  // With CTAs that could arrive from elsewhere, too.
  expectIds(kWaitByOne, {"warp-convergence"}, {2, 1, 1}, 64, {2, 1, 1});
}

/// The first finding's message.
static std::string messageOf(const std::string &instructions, int threads) {
  RunKernel run(instructions);
  run.config.block = {static_cast<std::uint32_t>(threads), 1, 1};
  return run.finding();
}

TEST(MissingEdge, IsAnAtomicOnlyWhereAStoreUpdates) {
  expectContains(messageOf("st.shared.u32 [%s], %t;", 64),
                 "missing: one thread that stores for both; else a barrier of "
                 "the CTA (bar.sync)");
  // What is read back later is no update.
  expectContains(messageOf("st.shared.u32 [%s], %t;"
                           "bar.sync 0;"
                           "ld.shared.u32 %r1, [%s];",
                           64),
                 "missing: one thread that stores for both");
  // Nor is what comes from elsewhere.
  expectContains(messageOf("ld.shared.u32 %r1, [%s+128];\n"
                           "add.u32 %r1, %r1, 1;\n"
                           "st.shared.u32 [%s], %r1;",
                           64),
                 "missing: one thread that stores for both");
  expectContains(messageOf("and.b32 %r0, %t, 31;"
                           "setp.ne.u32 %p0, %r0, 0;"
                           "@%p0 bra done;"
                           "ld.shared.u32 %r1, [%s];"
                           "add.u32 %r1, %r1, %t;"
                           "st.shared.u32 [%s], %r1;"
                           "done:",
                           64),
                 "missing: an atomic (atom or red) that reads, adds and "
                 "writes at once; else a barrier of the CTA");
}

TEST(UnwrittenStore, IsNamedWithItsOrigin) {
  std::string message = messageOf("ld.shared.u32 %r1, [%s];\n"
                                  "st.shared.u32 [%s+64], %r1;\n"
                                  "ld.shared.u32 %r2, [%s+64];\n"
                                  "st.global.u32 [%out], %r2;",
                                  1);
  expectContains(message, "a value that depends on bytes nobody wrote goes to "
                          "global memory; they were read at PTX:23: shared "
                          "address 1088 (byte 64 of tile), where PTX:22 has "
                          "stored a value that depends on bytes nobody wrote; "
                          "they were read at PTX:21: shared address 1024 "
                          "(byte 0 of tile), which nobody wrote");
  // A value that nothing has set has no origin.
  expectContains(messageOf("st.shared.u32 [%s], %r7;\n"
                           "ld.shared.u32 %r2, [%s];\n"
                           "st.global.u32 [%out], %r2;",
                           1),
                 "(byte 0 of tile), where PTX:21 has stored a value that "
                 "depends on bytes nobody wrote: thread 0");
}

TEST(ClusterBarrierRelaxed, PassesDataOnInsideACtaAlone) {
  auto kernel = [](const std::string &arrival, const std::string &read) {
    return "setp.ne.u32 %p0, %t, 0;"
           "@!%p0 st.shared.u32 [%s], 5;"
           "mov.u32 %r4, %s;" +
           arrival + "barrier.cluster.wait.aligned;" + read +
           "ld.shared::cluster.u32 %r1, [%r4];"
           "barrier.cluster.arrive.aligned;"
           "barrier.cluster.wait.aligned;";
  };
  std::string relaxed = "barrier.cluster.arrive.relaxed.aligned;";
  std::string far = "xor.b32 %r5, %rank, 1;"
                    "mapa.shared::cluster.u32 %r4, %s, %r5;";
  Dim3 two = {2, 1, 1};
  expectIds(kernel(relaxed, ""), {"cluster-barrier-relaxed"}, two, 64, two);
  expectIds(kernel("barrier.cluster.arrive.aligned;", ""), {}, two, 64, two);
  expectIds(kernel(relaxed, far), {"race"}, two, 64, two);
  expectIds(kernel("barrier.cluster.arrive.aligned;", far), {}, two, 64, two);
  // Its fence does what the arrival does not.
  expectIds(kernel("fence.acq_rel.cluster;" + relaxed, far), {}, two, 64, two);
}

/// A sum by atom.cas: `use` is done with what was read first, %r1.
static std::string sumBySwap(const std::string &use,
                             const std::string &load = "ld.global.u32") {
  return load + " %r1, [%in];" + use +
         "again:"
         "add.u32 %r2, %r1, %t;"
         "atom.global.cas.b32 %r3, [%in], %r1, %r2;"
         "setp.ne.u32 %p1, %r1, %r3;"
         "mov.u32 %r1, %r3;"
         "@%p1 bra again;"
         "shl.b32 %r5, %t, 2;"
         "cvt.u64.u32 %x0, %r5;"
         "add.u64 %x0, %x0, %out;";
}

TEST(CasFirstRead, IsAWarningWhereOnlyTheLoopUsesIt) {
  expectIds(sumBySwap("") + "st.global.u32 [%x0], %r3;", {"cas-first-read"},
            {1, 1, 1}, 64);
  expectIds(sumBySwap(""), {"cas-first-read"}, {4, 1, 1}, 64);
  expectIds(sumBySwap("", "ld.relaxed.gpu.global.u32"), {}, {4, 1, 1}, 64);
}

TEST(CasFirstRead, IsAWarningWhereTheValueIsUsedBehindTheLoop) {
  // What compilers make of `return old`: the two are the same there.
  expectIds(sumBySwap("") + "st.global.u32 [%x0], %r1;", {"cas-first-read"},
            {1, 1, 1}, 64);
  std::string last = "ld.global.u32 %r3, [%in];"
                     "again: mov.u32 %r1, %r3;"
                     "add.u32 %r2, %r1, %t;"
                     "atom.global.cas.b32 %r3, [%in], %r1, %r2;"
                     "setp.ne.u32 %p1, %r1, %r3;"
                     "@%p1 bra again;"
                     "mul.wide.u32 %x0, %t, 4;"
                     "add.u64 %x0, %x0, %out;"
                     "st.global.u32 [%x0], %r1;";
  expectIds(last, {"cas-first-read"}, {1, 1, 1}, 64);
  // Unless another way leads there.
  RunKernel run("ld.global.u32 %r1, [%in];"
                "mul.wide.u32 %x0, %t, 4;"
                "add.u64 %x0, %x0, %out;"
                "setp.eq.u32 %p0, %t, 3;"
                "@%p0 bra left;"
                "again: add.u32 %r2, %r1, %t;"
                "atom.global.cas.b32 %r3, [%in], %r1, %r2;"
                "setp.ne.u32 %p1, %r1, %r3;"
                "mov.u32 %r1, %r3;"
                "@%p1 bra again;"
                "left: st.global.u32 [%x0], %r1;");
  run.input(counting<std::uint32_t>(64));
  run.config.block = {64, 1, 1};
  EXPECT_NE(run.finding().find("race: "), std::string::npos);
}

TEST(CasFirstRead, IsARaceWhereTheValueGoesElsewhere) {
  auto isRace = [](const std::string &instructions) {
    RunKernel run(instructions);
    run.input(counting<std::uint32_t>(64));
    run.config.block = {64, 1, 1};
    Ids ids = idsOf(run);
    return std::find(ids.begin(), ids.end(), "race") != ids.end();
  };
  EXPECT_TRUE(isRace(sumBySwap("add.u32 %r6, %r1, 1;"
                               "mul.wide.u32 %x1, %t, 4;"
                               "add.u64 %x1, %x1, %out;"
                               "st.global.u32 [%x1], %r6;")));
  // Who leaves the loop because of the value has believed it.
  EXPECT_TRUE(
      isRace(sumBySwap("setp.gt.u32 %p2, %r1, 9; @%p2 bra done;") + "done:"));
  EXPECT_TRUE(isRace(sumBySwap("and.b32 %r6, %r1, 60;"
                               "add.u32 %r6, %r6, %s;"
                               "st.shared.u32 [%r6], 1;")));
  EXPECT_FALSE(isRace(sumBySwap("")));
}

/// What nvcc makes of a maximum by atomicCAS that ends early.
static std::string maximumBySwap(const std::string &leave,
                                 const std::string &again = "again") {
  return "mov.u32 %r2, %t;"
         "ld.global.u32 %r1, [%in];"
         "again:" +
         leave +
         "within: atom.global.cas.b32 %r3, [%in], %r1, %r2;"
         "setp.ne.u32 %p1, %r1, %r3;"
         "mov.u32 %r1, %r3;"
         "@%p1 bra " +
         again + ";done:";
}

TEST(CasFirstRead, IsAWarningWhereAMaximumEndsEarly) {
  for (const char *leave :
       {"setp.ge.u32 %p2, %r1, %r2; @%p2 bra done;",
        "setp.le.u32 %p2, %r2, %r1; @%p2 bra done;",
        "setp.gt.u32 %p2, %r2, %r1; @!%p2 bra done;",
        "setp.gt.u32 %p2, %r2, %r1; @%p2 bra within; bra done;",
        "mov.b32 %f0, %r1; mov.b32 %f1, %r2; setp.leu.f32 %p2, %f1, %f0;"
        "@%p2 bra done;"}) {
    SCOPED_TRACE(leave);
    std::string kernel = maximumBySwap(leave);
    for (Interleaving order : kOrders) {
      int seeds = order == Interleaving::random ? 200 : 1;
      for (int seed = 0; seed < seeds; ++seed) {
        RunKernel run(kernel);
        run.input(std::vector<std::uint32_t>(64));
        run.config.grid = {2, 1, 1};
        run.config.block = {64, 1, 1};
        run.config.interleaving = order;
        run.config.seed = static_cast<std::uint64_t>(seed);
        ASSERT_EQ(idsOf(run), Ids{"cas-first-read"}) << "seed " << seed;
      }
    }
  }
}

TEST(CasFirstRead, IsARaceWhereWhatIsStoredMayBeLess) {
  auto isRace = [](const std::string &instructions) {
    RunKernel run(instructions);
    run.input(counting<std::uint32_t>(64));
    run.config.block = {64, 1, 1};
    Ids ids = idsOf(run);
    return std::find(ids.begin(), ids.end(), "race") != ids.end();
  };
  std::string leave = "setp.ge.u32 %p2, %r1, %r2; @%p2 bra done;";
  EXPECT_FALSE(isRace(maximumBySwap(leave)));
  // A second round stores whatever stands there.
  EXPECT_TRUE(isRace(maximumBySwap(leave, "within")));
  // One goes up, and one goes down.
  EXPECT_TRUE(isRace(maximumBySwap("and.b32 %r9, %t, 1;"
                                   "setp.eq.u32 %p4, %r9, 0;"
                                   "@%p4 bra up;"
                                   "setp.le.u32 %p3, %r1, %r2;"
                                   "@%p3 bra done;"
                                   "bra within;"
                                   "up:" +
                                   leave)));
  // Something else is stored than was compared.
  EXPECT_TRUE(isRace(maximumBySwap("setp.ge.u32 %p2, %r1, 7; @%p2 bra done;")));
  EXPECT_TRUE(isRace(maximumBySwap("setp.ne.u32 %p2, %r1, %r2;"
                                   "@%p2 bra done;")));
  // Another atomic changes the place as it likes.
  EXPECT_TRUE(
      isRace(maximumBySwap(leave) + "atom.global.exch.b32 %r4, [%in], 0;"));
}

TEST(GenericSharedAddress, IsAWarningAndMeansItsLowBits) {
  RunKernel run("st.shared.u32 [%s+4], 77;"
                "cvt.u64.u32 %x0, %s;"
                "cvta.shared.u64 %x1, %x0;"
                "ld.shared.u32 %r1, [%x1+4];"
                "st.global.u32 [%out], %r1;");
  run.config.block = {1, 1, 1};
  LaunchResult result = run.run();
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].id, "generic-shared-address");
  EXPECT_EQ(result.findings[0].grade, Finding::Grade::warning);
  EXPECT_EQ(run.result<std::uint32_t>(0), 77u);
  // Another window is none of .shared's.
  RunKernel global("ld.shared.u32 %r1, [%in];");
  global.config.block = {1, 1, 1};
  expectContains(global.finding(), "out-of-bounds: ");
}

TEST(GenericSharedAddress, MayBeWhereTensorMemoryIsAllocated) {
  expectIds("cvt.u64.u32 %x0, %s;"
            "cvta.shared.u64 %x1, %x0;"
            "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%x1], 32;"
            "bar.sync 0;"
            "ld.shared.u32 %r1, [%s];"
            "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 32;",
            {"generic-shared-address"}, {1, 1, 1}, 32, {1, 1, 1}, "sm_100a");
}

/// CTA 1 waits for CTA 0's flag and writes where that has read.
static std::string inPlace(const std::string &read, const std::string &flag,
                           const std::string &wait, const std::string &write) {
  return "mov.u32 %r0, %ctaid.x;"
         "shl.b32 %r9, %t, 2;"
         "cvt.u64.u32 %x0, %r9;"
         "add.u64 %x0, %x0, %in;"
         "add.u32 %r9, %r9, %s;"
         "setp.ne.u32 %p0, %t, 0;"
         "setp.ne.u32 %p1, %r0, 0;"
         "@%p1 bra second;" +
         read + "@!%p0 " + flag +
         " [%out], 1;"
         "bra done;"
         "second:"
         "@%p0 bra met;"
         "again: " +
         wait +
         " %r2, [%out];"
         "setp.eq.u32 %p2, %r2, 0;"
         "@%p2 bra again;"
         "met: bar.sync 0;" +
         write + "done:";
}

TEST(RelaxedAfterRead, IsAWarningWhereTheValueWasUsed) {
  const std::string read = "ld.global.u32 %r1, [%x0];"
                           "st.shared.u32 [%r9], %r1;"
                           "bar.sync 0;";
  const std::string write = "st.global.u32 [%x0], 7;";
  const std::string flag = "st.relaxed.gpu.global.u32",
                    wait = "ld.relaxed.gpu.global.u32";
  Dim3 two = {2, 1, 1};
  expectIds(inPlace(read, flag, wait, write), {"relaxed-after-read"}, two, 64);
  expectIds(inPlace(read, "st.release.gpu.global.u32",
                    "ld.acquire.gpu.global.u32", write),
            {}, two, 64);
  // The load may be under way when the flag is set.
  expectIds(inPlace("ld.global.u32 %r1, [%x0];"
                    "bar.sync 0;",
                    flag, wait, write),
            {"race"}, two, 64);
  expectIds(inPlace("ld.global.u32 %r1, [%x0];"
                    "bar.sync 0;"
                    "st.shared.u32 [%r9], %r1;",
                    flag, wait, write),
            {"race"}, two, 64);
  // All have used theirs where a second barrier stands.
  expectIds(inPlace("ld.global.u32 %r1, [%x0];"
                    "bar.sync 0;"
                    "st.shared.u32 [%r9], %r1;"
                    "bar.sync 0;",
                    flag, wait, write),
            {"relaxed-after-read"}, two, 64);
  // Data that is passed on needs release and acquire.
  expectIds(inPlace("st.global.u32 [%x0], %t;"
                    "bar.sync 0;",
                    flag, wait, "ld.global.u32 %r1, [%x0];"),
            {"race"}, two, 64);
  expectIds(inPlace("st.global.u32 [%x0], %t;"
                    "bar.sync 0;",
                    flag, wait, write),
            {"race"}, two, 64);
}

/// A tensor map that is built in shared memory, and a copy over it later.
static std::string mapInShared(const std::string &handOver,
                               const std::string &barrier) {
  std::string text = "setp.ne.u32 %p0, %t, 0;"
                     "@!%p0 mbarrier.init.shared.b64 [%bar], 1;"
                     "@!%p0 fence.mbarrier_init.release.cluster;"
                     "bar.sync 0;"
                     "setp.ge.u32 %p1, %t, 32;"
                     "@%p1 bra met;"
                     "shl.b32 %r0, %t, 2;"
                     "add.u32 %r0, %r0, %s;"
                     "st.shared.u32 [%r0], 0;"
                     "bar.warp.sync 0xffffffff;";
  text += handOver + "met: " + barrier +
          "setp.ne.u32 %p0, %t, 32;"
          "@%p0 bra done;"
          "mbarrier.arrive.expect_tx.shared.b64 _, [%bar], 128;"
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
          "[%s], [%in], 128, [%bar];"
          "again: mbarrier.try_wait.parity.shared.b64 %p2, [%bar], 0;"
          "@!%p2 bra again;"
          "done:";
  return text;
}

TEST(CopiedTensorMap, MayBeOverwrittenByALaterCopy) {
  const std::string copy =
      "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release."
      "gpu.sync.aligned [%out], [%s], 128;";
  expectIds(mapInShared(copy, "bar.sync 0;"), {"proxy-fence-after-read"},
            {1, 1, 1}, 64);
  expectIds(mapInShared("fence.proxy.async.shared::cta;" + copy +
                            "fence.proxy.async.shared::cta;",
                        "bar.sync 0;"),
            {}, {1, 1, 1}, 64);
  // What a thread has read itself is as it was.
  expectIds(mapInShared("ld.shared.u32 %r1, [%r0];", "bar.sync 0;"),
            {"proxy-fence", "proxy-fence-after-read"}, {1, 1, 1}, 64);
  // Written again behind the copy.
  expectIds(mapInShared(copy + "st.shared.u32 [%r0], 1;", "bar.sync 0;"),
            {"warp-convergence", "proxy-fence"}, {1, 1, 1}, 64);
}

} // namespace kiln::sim
