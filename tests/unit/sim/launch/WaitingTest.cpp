// Waiting: spin loops that end, those that never will, and what is said of
// them.
#include "unit/sim/RunKernel.h"

namespace kiln::sim {

/// Run in every order without a finding but that such flags are races; element
/// 0 of the output is `want`.
static void expectResult(const std::string &body, std::uint32_t want,
                         Dim3 grid = {1, 1, 1}, Dim3 block = {32, 1, 1}) {
  for (Interleaving order : kOrders) {
    RunKernel run(body);
    run.config.grid = grid;
    run.config.block = block;
    run.config.allow = {"race", "same-value", "warp-convergence"};
    run.output(std::vector<std::uint32_t>(8, 0)).runCleanly(order);
    EXPECT_EQ(run.result<std::uint32_t>(0), want);
  }
}

TEST(Waiting, ALaneWaitsForAnotherLane) {
  // The lanes that leave the loop wait for the others where their paths meet;
  // lane 0 spins until they have been let go.
  expectResult(R"(
    mov.u32 %r0, 0;
    st.shared.u32 [tile], %r0;
    setp.eq.u32 %p0, %t, 0;
  again:
    ld.volatile.shared.u32 %r0, [tile];
    setp.ne.u32 %p1, %r0, 7;
    and.pred %p1, %p1, %p0;
    @%p1 bra again;
    @%p0 bra write;
    mov.u32 %r1, 7;
    st.volatile.shared.u32 [tile], %r1;
    bra done;
  write:
    st.global.u32 [%out], %r0;
  done:
    bar.sync 0;
  )",
               7);
}

TEST(Waiting, ALockIsHandedFromLaneToLane) {
  expectResult(R"(
  again:
    atom.global.cas.b32 %r0, [%out+4], 0, 1;
    setp.ne.u32 %p0, %r0, 0;
    @%p0 bra again;
    membar.gl;
    ld.volatile.global.u32 %r1, [%out];
    add.u32 %r1, %r1, 1;
    st.volatile.global.u32 [%out], %r1;
    membar.gl;
    atom.global.exch.b32 %r2, [%out+4], 0;
    bar.sync 0;
  )",
               64, {1, 1, 1}, {64, 1, 1});
}

TEST(Waiting, AWarpWaitsForAnotherWithPlainLoads) {
  expectResult(R"(
    mov.u32 %r0, 0;
    st.shared.u32 [tile], %r0;
    bar.sync 0;
    setp.ge.u32 %p0, %t, 32;
    @%p0 bra send;
  again:
    ld.shared.u32 %r0, [tile];
    setp.ne.u32 %p1, %r0, 5;
    nanosleep.u32 20;
    @%p1 bra again;
    st.global.u32 [%out], %r0;
    bra done;
  send:
    mov.u32 %r1, 5;
    st.shared.u32 [tile], %r1;
  done:
  )",
               5, {1, 1, 1}, {64, 1, 1});
}

TEST(Waiting, ACtaWaitsForALaterOne) {
  // Without ordered accesses, too: the first CTA polls with a plain load.
  for (const char *load : {"ld.acquire.gpu.global.u32", "ld.global.u32"})
    expectResult(fmt::format(R"(
    mov.u32 %r9, %ctaid.x;
    setp.eq.u32 %p0, %r9, 3;
    @%p0 bra send;
  again:
    {} %r0, [%out+4];
    setp.eq.u32 %p1, %r0, 0;
    @%p1 bra again;
    st.global.u32 [%out], %r0;
    bra done;
  send:
    mov.u32 %r1, 9;
    st.release.gpu.global.u32 [%out+4], %r1;
  done:
  )",
                             load),
                 9, {4, 1, 1});
}

/// The finding of CTAs of which each waits for the one behind it; the last one
/// writes first.
static std::string chainOn(int sms, int ctas) {
  RunKernel run(R"(
    mov.u32 %r9, %ctaid.x;
    mov.u32 %r8, %nctaid.x;
    sub.u32 %r8, %r8, 1;
    setp.eq.u32 %p0, %r9, %r8;
    mul.wide.u32 %x0, %r9, 4;
    add.u64 %x0, %out, %x0;
    @%p0 bra send;
  again:
    ld.acquire.gpu.global.u32 %r0, [%x0+4];
    setp.eq.u32 %p1, %r0, 0;
    @%p1 bra again;
  send:
    mov.u32 %r1, 1;
    st.release.gpu.global.u32 [%x0], %r1;
  )");
  run.output(std::vector<std::uint32_t>(64, 0));
  run.config.device = DeviceDescription::h200();
  run.config.device.sms = sms;
  run.config.grid = {static_cast<std::uint32_t>(ctas), 1, 1};
  run.config.block = {1024, 1, 1};
  return run.finding();
}

TEST(Waiting, CtasBeyondResidencyBeginWhenOthersEnd) {
  EXPECT_EQ(chainOn(4, 8), "");
  std::string finding = chainOn(4, 9);
  expectContains(finding, "deadlock: all remaining threads are blocked:");
  expectContains(finding, "1 CTAs have not begun: the device has no room");
  expectContains(finding, "CTA (0, 0, 0), threads 0 to 1023: the 4 bytes at "
                          "global address");
  expectContains(finding, "(byte 4 of out (8192 bytes)), which are 0x0");
  expectContains(finding, "it could be written by PTX:");
}

TEST(Waiting, SaysWhoWroteAFlagLast) {
  RunKernel run(R"(
    mov.u32 %r1, 3;
    atom.global.exch.b32 %r2, [%out], %r1;
  again:
    ld.relaxed.gpu.global.u32 %r0, [%out];
    setp.eq.u32 %p1, %r0, 3;
    @%p1 bra again;
  )");
  run.output(std::vector<std::uint32_t>(8, 0));
  std::string finding = run.finding();
  expectContains(finding, "which are 0x3, last written by thread 0 of CTA "
                          "(0, 0, 0) at PTX:");
}

TEST(Waiting, APollThatIsTurnedOffIsNotWhatIsWaitedFor) {
  RunKernel run(R"(
    setp.ne.u32 %p2, %t, %t;
    mov.u64 %x1, 16;
  again:
    ld.volatile.global.u32 %r0, [%out];
    @%p2 ld.volatile.global.u32 %r1, [%x1];
    setp.eq.u32 %p1, %r0, 0;
    @%p1 bra again;
  )");
  run.output(std::vector<std::uint32_t>(8, 0));
  std::string finding = run.finding();
  expectContains(finding, "deadlock: all remaining threads are blocked:");
  expectContains(finding, "(byte 0 of out (8192 bytes)), which are 0x0");
}

TEST(Waiting, AnAddressThatHasChangedSinceIsNotRead) {
  RunKernel run(R"(
  again:
    mov.u64 %x1, %out;
    ld.volatile.global.u32 %r0, [%x1];
    mov.u64 %x1, 16;
    setp.eq.u32 %p1, %r0, 0;
    @%p1 bra again;
  )");
  run.output(std::vector<std::uint32_t>(8, 0));
  std::string finding = run.finding();
  expectContains(finding, "deadlock: all remaining threads are blocked:");
  expectContains(finding, "threads 0 to 31: what a loop reads, at an address "
                          "that has changed since, at PTX:");
}

TEST(Waiting, AFlagIsWaitedForThoughItsAddressHasChangedSince) {
  RunKernel run(R"(
    mov.u32 %r2, %ctaid.x;
    setp.ne.u32 %p2, %r2, 0;
    @%p2 bra set;
  again:
    mov.u64 %x1, %out;
    ld.acquire.gpu.global.u32 %r0, [%x1];
    mov.u64 %x1, 16;
    setp.eq.u32 %p1, %r0, 0;
    @%p1 bra again;
    ret;
  set:
    mov.u32 %r1, 0;
  count:
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p3, %r1, 1000;
    @%p3 bra count;
    st.release.gpu.global.u32 [%out], %r1;
  )");
  run.output(std::vector<std::uint32_t>(8, 0));
  run.config.grid = {2, 1, 1};
  EXPECT_EQ(run.finding(), "");
}

/// A kernel with an mbarrier of `count` arrivals that thread 0 makes.
static std::string mbarrierKernel(int count, const std::string &rest) {
  return fmt::format(R"(
    setp.ne.u32 %p0, %t, 0;
    @%p0 bra ready;
    mbarrier.init.shared::cta.b64 [barrier], {};
    fence.mbarrier_init.release.cluster;
  ready:
    bar.sync 0;
    @%p0 bra wait;
    mbarrier.arrive.expect_tx.shared::cta.b64 %x0, [barrier], 48;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes
      [tile], [%in], 32, [barrier];
  wait:
    {}
  )",
                     count, rest);
}

TEST(Waiting, ReportsWhatAnMbarrierMisses) {
  const char *test = "test_wait", *tries = "try_wait";
  for (const char *wait : {test, tries}) {
    RunKernel run(mbarrierKernel(
        2, fmt::format("mbarrier.{}.parity.shared::cta.b64 %p1, [barrier], 0;"
                       "@!%p1 bra wait;",
                       wait)));
    run.input(counting<std::uint32_t>(16));
    std::string finding = run.finding();
    expectContains(finding, "deadlock: all remaining threads are blocked:\n  CTA (0, "
                            "0, 0), threads 0 to 31: the mbarrier at shared "
                            "address");
    expectContains(finding, "phase of parity 0: 1 of 2 arrivals and 16 bytes "
                            "are missing, 0 phases are complete, at PTX:");
    expectContains(finding, "arrivals so far came from PTX:");
  }
}

TEST(Waiting, ALoopThatOnlyCountsIsNoWait) {
  // It reads the same every time, but ends by its own counter.
  expectResult(R"(
    mov.u32 %r1, 0;
  again:
    ld.volatile.global.u32 %r0, [%out+4];
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p0, %r1, 3000;
    @%p0 bra again;
    st.global.u32 [%out], %r1;
  )",
               3000);
}

TEST(Waiting, EndsWhatMovesWithoutGettingAnywhere) {
  RunKernel run(R"(
  again:
    atom.global.add.u32 %r0, [%out], 1;
    setp.ne.u32 %p0, %r0, 4294967295;
    @%p0 bra again;
  )");
  run.output(std::vector<std::uint32_t>(8, 0));
  run.config.max_instructions = 10000;
  std::string finding = run.finding();
  expectContains(finding, "instruction-limit: CTA (0, 0, 0) has executed");
  expectContains(finding, "the limit is 10000 (--max-instructions). It needs "
                          "more, or it moves without getting anywhere:\n  CTA "
                          "(0, 0, 0), threads 0 to 31: running or waiting, at "
                          "PTX:");
}

/// Seven lanes of a warp go one way, the others another.
static const std::string kFew = "setp.lt.u32 %p0, %t, 7;"
                                "@%p0 bra few;";

TEST(Waiting, ThreadsThatHaveLeftAreNotWaitedFor) {
  RunKernel run(kFew + R"(
    ret;
  few:
    st.shared.u32 [%s], 5;
    bar.sync 0;
    ld.shared.u32 %r0, [%s];
    st.global.u32 [%out], %r0;
  )");
  run.config.block = {64, 1, 1};
  for (Interleaving order : {Interleaving::eager, Interleaving::random})
    run.runCleanly(order);
  EXPECT_EQ(run.result<std::uint32_t>(0), 5u);
}

TEST(Waiting, LanesMeetAtABarrierThatTheyReachByDifferentPaths) {
  // The barrier is behind a jump that both paths take by themselves.
  RunKernel run(kFew + R"(
    add.u32 %r0, %t, 100;
    setp.eq.u32 %p1, %t, 9;
    @%p1 bra meet;
    add.u32 %r0, %r0, 100;
    bra meet;
  few:
    mov.u32 %r0, %t;
  meet:
    shl.b32 %r1, %t, 2;
    add.u32 %r1, %r1, %s;
    st.shared.u32 [%r1], %r0;
    bar.sync 0;
    xor.b32 %r2, %t, 15;
    shl.b32 %r2, %r2, 2;
    add.u32 %r2, %r2, %s;
    ld.shared.u32 %r3, [%r2];
    mul.wide.u32 %x0, %t, 4;
    add.u64 %x0, %x0, %out;
    st.global.u32 [%x0], %r3;
  )");
  run.runCleanly(Interleaving::eager).runCleanly(Interleaving::random);
  EXPECT_EQ(run.result<std::uint32_t>(9), 6u);
}

TEST(Waiting, TwoInstructionsOfOneBarrierAreAWarning) {
  RunKernel run(kFew + R"(
    bar.sync 1;
    bra done;
  few:
    bar.sync 1;
  done:
  )");
  LaunchResult result = run.run();
  ASSERT_EQ(result.findings.size(), 2u);
  for (const Finding &finding : result.findings) {
    EXPECT_EQ(finding.id, "divergent-barrier");
    EXPECT_EQ(finding.grade, Finding::Grade::warning);
  }
  expectContains(result.findings[0].message,
                 "25 of 32 lanes of the warp wait here, and the others at "
                 "another instruction of the same barrier");
  EXPECT_TRUE(result.is_finished);
}

TEST(Waiting, ReportsAnAlignedInstructionThatOtherLanesNeverReach) {
  const std::string apart = kFew + R"(
    bar.sync 1;
    bra done;
  few:
    bar.sync 0;
  done:
  )";
  RunKernel run(apart);
  LaunchResult result = run.run();
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].id, "divergent-aligned");
  expectContains(result.findings[0].message,
                 "bar.sync is for whole warps and 25 of 32 lanes reached it");
  EXPECT_FALSE(result.is_finished);
  // Allowed, they wait apart: each barrier opens for those who are there.
  RunKernel allowed(apart);
  allowed.config.allow = {"divergent-aligned"};
  result = allowed.run();
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].id, "deadlock");
}

TEST(Waiting, WhatIsAllowedIsLeftOutAndTheLaunchGoesOn) {
  RunKernel run("st.global.u32 [%out+65536], 1;"
                "mov.u32 %r0, 3;"
                "st.global.u32 [%out], %r0;");
  expectContains(run.finding(), "out-of-bounds: ");
  run.config.allow = {"out-of-bounds"};
  LaunchResult result = run.run();
  EXPECT_TRUE(result.findings.empty());
  EXPECT_EQ(run.result<std::uint32_t>(0), 3u);
  run.config.allow = {};
  run.config.warn = {"out-of-bounds"};
  result = run.run();
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].grade, Finding::Grade::warning);
  EXPECT_TRUE(result.is_finished);
}

TEST(Waiting, ADeadlockThatIsAllowedIsANote) {
  RunKernel run("mbarrier.init.shared.b64 [%bar], 64;"
                "again:"
                "mbarrier.try_wait.parity.shared.b64 %p0, [%bar], 0;"
                "@!%p0 bra again;");
  run.config.block = {1, 1, 1};
  run.config.allow = {"deadlock"};
  LaunchResult result = run.run();
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].grade, Finding::Grade::note);
  expectContains(result.findings[0].message,
                 "It is allowed (--allow deadlock), and the launch ended here");
  EXPECT_FALSE(result.is_finished);
}

TEST(Waiting, ReportsWhoIsMissingAtABarrier) {
  RunKernel run(R"(
    setp.lt.u32 %p0, %t, 32;
    @%p0 bra first;
    bar.sync 1, 64;
    bra done;
  first:
    bar.sync 2, 64;
  done:
  )");
  run.config.block = {64, 1, 1};
  std::string finding = run.finding();
  expectContains(finding, "threads 0 to 31: barrier 2: 32 of 64 threads have "
                          "arrived, at PTX:");
  expectContains(finding, "warp 1 is at PTX:");
}

/// The other lanes wait for it at a barrier for whole warps; they have not gone
/// astray.
TEST(Waiting, ALaneThatWaitsInVainIsWhatIsWrong) {
  const char *waits[] = {R"(
  again:
    ld.volatile.global.u32 %r0, [%in];
    setp.eq.u32 %p1, %r0, 0;
    @%p1 bra again;
  )",
                         R"(
    mbarrier.init.shared::cta.b64 [barrier], 1;
  again:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [barrier], 0;
    @!%p1 bra again;
  )"};
  for (const char *wait : waits) {
    RunKernel run(std::string("setp.ne.u32 %p0, %t, 0;\n@%p0 bra ready;\n") +
                  wait + "ready:\nbar.sync 0;\n");
    run.input<std::uint32_t>({0});
    run.config.block = {64, 1, 1};
    LaunchResult result = run.run();
    ASSERT_EQ(result.findings.size(), 1u);
    EXPECT_EQ(result.findings[0].id, "deadlock");
    EXPECT_EQ(result.findings[0].thread, 0);
    EXPECT_NE(result.findings[0].buffer, "");
  }
}

TEST(Waiting, FindingsNameThreadCtaAndAddress) {
  RunKernel run("mov.u32 %r1, %ctaid.x; setp.eq.u32 %p0, %r1, 1;"
                "@!%p0 ret; setp.eq.u32 %p1, %t, 3;"
                "@%p1 ld.global.u32 %r0, [%in+8192];");
  run.config.grid = {2, 1, 1};
  LaunchResult result = run.run();
  ASSERT_EQ(result.findings.size(), 1u);
  const Finding &finding = result.findings[0];
  EXPECT_EQ(finding.id, "out-of-bounds");
  EXPECT_EQ(finding.thread, 3);
  EXPECT_EQ(finding.cta, (Dim3{1, 0, 0}));
  EXPECT_EQ(finding.space, "global");
  EXPECT_EQ(finding.buffer, "in");
  EXPECT_TRUE(finding.address.has_value());
  EXPECT_FALSE(result.is_finished);
  expectContains(finding.to_string(), "error out-of-bounds at PTX:");
  expectContains(jsonOf(result), "\"thread\": 3");
  expectContains(jsonOf(result), "\"buffer\": \"in\"");
  expectContains(jsonOf(result), "\"verdict\": \"error\"");
}

TEST(Waiting, ErrorsCanBeAllowedOrTakenForWarnings) {
  const char *body = "ld.global.u32 %r0, [%in]; st.global.u32 [%out], %r0;";
  RunKernel run(body);
  expectContains(run.finding(), "uninitialized-store");
  EXPECT_FALSE(run.run().ok());
  EXPECT_TRUE(run.run().is_finished);
  run.config.warn = {"uninitialized-store"};
  LaunchResult result = run.run();
  EXPECT_TRUE(result.ok());
  EXPECT_TRUE(result.is_finished);
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].grade, Finding::Grade::warning);
  run.config.allow = {"uninitialized-store"};
  EXPECT_EQ(run.finding(), "");
}

TEST(Waiting, ThreadsOfTheHostDoNotChangeTheReport) {
  // Every CTA has a warning, CTA 9 an error; what follows is not told.
  auto report = [](int threads) {
    RunKernel run(R"(
      mov.u32 %r1, %ctaid.x;
      mbarrier.init.shared::cta.b64 [barrier], 1;
      mbarrier.init.shared::cta.b64 [barrier], 1;
      setp.ge.u32 %p0, %r1, 9;
      @%p0 trap;
    )");
    run.config.grid = {64, 1, 1};
    run.config.block = {1, 1, 1};
    run.config.threads = threads;
    return run.run();
  };
  LaunchResult one = report(1);
  ASSERT_EQ(one.findings.size(), 2u);
  EXPECT_EQ(one.findings[1].cta, (Dim3{9, 0, 0}));
  for (int i = 0; i < 20; ++i) {
    LaunchResult many = report(4);
    EXPECT_EQ(many.instructions, one.instructions);
    ASSERT_EQ(many.findings.size(), one.findings.size());
    for (std::size_t k = 0; k < one.findings.size(); ++k)
      EXPECT_EQ(many.findings[k].message, one.findings[k].message);
  }
}

} // namespace kiln::sim
