// LoopWatch: loops that repeat themselves are found within a moment; those that
// get somewhere, however slowly, are not.
#include "unit/sim/RunKernel.h"

namespace kiln::sim {

/// The finding, which must come long before a billion instructions.
static std::string findingOf(const std::string &body, Dim3 block = {32, 1, 1}) {
  RunKernel run(body);
  run.config.block = block;
  run.config.allow = {"race", "same-value", "warp-convergence"};
  run.config.max_instructions = 50'000'000;
  run.output(std::vector<std::uint32_t>(64, 0));
  run.input(std::vector<std::uint32_t>(64, 0));
  return run.finding();
}

/// Of a random interleaving nobody knows when it has gone round.
static constexpr Interleaving kOrderly[] = {Interleaving::eager,
                                            Interleaving::lazy};

/// It gets somewhere: element 0 of the output is `want` in every order.
static void expectResult(const std::string &body, std::uint32_t want,
                         Dim3 block = {32, 1, 1}, Dim3 grid = {1, 1, 1},
                         std::span<const Interleaving> orders = kOrders) {
  for (Interleaving order : orders) {
    RunKernel run(body);
    run.config.block = block;
    run.config.grid = grid;
    run.config.checks = false; // which would find races
    run.output(std::vector<std::uint32_t>(64, 0)).runCleanly(order);
    EXPECT_EQ(run.result<std::uint32_t>(0), want);
  }
}

TEST(LoopWatch, ABranchToItself) {
  std::string finding = findingOf("again: bra again;");
  expectContains(finding, "endless-loop: the loop of PTX:");
  expectContains(finding,
                 " gets nowhere: what decides about its next round is as it "
                 "was one round before, and it reads nothing that another "
                 "thread could change: thread 0 of CTA (0, 0, 0) and 31 more "
                 "of its warp [bra again;]\n  Where everyone is:\n  CTA (0, 0, "
                 "0), threads 0 to 31: running, at PTX:");
}

TEST(LoopWatch, RegistersThatRepeatAfterSomeRounds) {
  std::string finding = findingOf(R"(
    mov.u32 %r0, 1;
    mov.u32 %r2, 0;
  again:
    xor.b32 %r0, %r0, 1;
    setp.lt.u32 %p0, %r0, 2;
    add.u32 %r2, %r2, 1;
    @%p0 bra again;
    st.global.u32 [%out], %r2;
  )");
  // The counter %r2 decides nothing and may change.
  expectContains(finding, "endless-loop: the loop of PTX:");
  expectContains(finding, "what decides about its next round (%r0 = 0x");
  expectContains(finding, ", %p0 = 1) is as it was 2 rounds before");
}

TEST(LoopWatch, ALongPeriodAndAnInnerLoop) {
  std::string finding = findingOf(R"(
    mov.u32 %r0, 0;
  outer:
    mov.u32 %r1, 0;
  inner:
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p0, %r1, 700;
    @%p0 bra inner;
    add.u32 %r0, %r0, 3;
    rem.u32 %r0, %r0, 11;
    setp.ne.u32 %p1, %r0, 99;
    @%p1 bra outer;
  )");
  expectContains(finding, "endless-loop: the loop of PTX:");
}

TEST(LoopWatch, BranchesInALoopAndLanesThatPart) {
  std::string finding = findingOf(R"(
    mov.u32 %r0, %t;
  again:
    and.b32 %r1, %r0, 1;
    setp.eq.u32 %p0, %r1, 0;
    @%p0 bra even;
    sub.u32 %r0, %r0, 1;
    bra join;
  even:
    add.u32 %r0, %r0, 1;
  join:
    setp.ne.u32 %p1, %r0, 4294967295;
    @%p1 bra again;
  )");
  expectContains(finding, "endless-loop: the loop of PTX:");
  expectContains(finding, "2 rounds before");
}

/// Lanes 12 to 31 go round the inner loop alike in each round of the outer one,
/// longer than the others.
static std::string innerLoopOfSomeLanes(const std::string &outer) {
  return R"(
    mov.u32 %r0, 0;
    setp.lt.u32 %p1, %t, 12;
  outer:
    selp.u32 %r1, 2, 7, %p1;
  inner:
    sub.u32 %r1, %r1, 1;
    setp.ne.u32 %p0, %r1, 0;
    @%p0 bra inner;
    add.u32 %r0, %r0, 1;
    setp.lt.u32 %p2, %r0, 40000;
    )" + outer +
         R"( bra outer;
    st.global.u32 [%out], %r0;
  )";
}

TEST(LoopWatch, LanesThatLeaveALoopAndComeBackToIt) {
  expectResult(innerLoopOfSomeLanes("@%p2"), 40000);
  expectContains(findingOf(innerLoopOfSomeLanes("")),
                 "endless-loop: the loop of PTX:");
}

TEST(LoopWatch, ALoopOverMemoryThatNobodyElseSees) {
  // Local memory is private; shared memory of the last warp as good as.
  for (auto [space, name, reads] :
       {std::tuple{"local", "mine", "it reads nothing that another thread"},
        std::tuple{"shared", "tile",
                   "nobody is left who could change what it "
                   "reads at PTX:"}}) {
    std::string finding = findingOf(fmt::format(R"(
    .local .align 4 .b8 mine[4];
    mov.u32 %r0, 0;
    st.{0}.u32 [{1}], %r0;
  again:
    ld.{0}.u32 %r0, [{1}];
    xor.b32 %r0, %r0, 1;
    st.{0}.u32 [{1}], %r0;
    bra again;
  )",
                                                space, name));
    expectContains(finding, "endless-loop: the loop of PTX:");
    expectContains(finding, reads);
  }
}

TEST(LoopWatch, SaysWhereTheOthersAre) {
  std::string finding = findingOf(R"(
    setp.ge.u32 %p0, %t, 32;
    @%p0 bra done;
  again:
    bra again;
  done:
    bar.sync 0;
  )",
                                  {64, 1, 1});
  expectContains(finding, "endless-loop: the loop of PTX:");
  expectContains(finding, "threads 32 to 63: barrier 0: 32 of 64 threads have "
                          "arrived, at PTX:");
}

TEST(LoopWatch, ALoopThatWritesTheSameAgainIsAWait) {
  std::string finding = findingOf(R"(
    setp.ge.u32 %p0, %t, 32;
    @%p0 bra done;
  again:
    st.volatile.global.u32 [%out+8], 5;
    ld.volatile.global.u32 %r0, [%out+4];
    setp.eq.u32 %p1, %r0, 0;
    @%p1 bra again;
  done:
    bar.sync 0;
  )",
                                  {64, 1, 1});
  expectContains(finding, "deadlock: all remaining threads are blocked:");
  expectContains(finding, "which are 0x0");
}

/// Warp 0 waits, with another register in every other round; warp 1 says
/// `rest`.
static std::string waitOfTwoRounds(const std::string &rest) {
  return fmt::format(R"(
    mov.u32 %r0, 0;
    mov.u32 %r9, 0;
    setp.ge.u32 %p0, %t, 32;
    @%p0 bra other;
  again:
    xor.b32 %r0, %r0, 1;
    mul.wide.u32 %x0, %r0, 4;
    add.u64 %x0, %x0, %out;
    ld.volatile.global.u32 %r1, [%x0+16];
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra again;
    st.global.u32 [%out], %r1;
    bra done;
  other:
    {}
  done:
    bar.sync 0;
  )",
                     rest);
}

TEST(LoopWatch, AWaitOfSeveralRoundsEndsWhenItsTimeHasCome) {
  expectResult(waitOfTwoRounds(R"(
    add.u32 %r9, %r9, 1;
    setp.lt.u32 %p2, %r9, 150000;
    @%p2 bra other;
    st.volatile.global.u32 [%out+20], 7;
  )"),
               7, {64, 1, 1});
}

TEST(LoopWatch, AWaitOfSeveralRoundsInVainIsADeadlock) {
  std::string finding = findingOf(waitOfTwoRounds(""), {64, 1, 1});
  expectContains(finding, "deadlock: all remaining threads are blocked:\n  CTA (0, 0, "
                          "0), threads 0 to 31: a loop that repeats itself "
                          "every 2 rounds and reads memory at PTX:");
  expectContains(finding, "threads 32 to 63: barrier 0: 32 of 64");
}

TEST(LoopWatch, WhoGetsSomewhereIsLeftAlone) {
  // A counter, in a register and in memory; a clock.
  expectResult(R"(
    mov.u32 %r0, 0;
  again:
    add.u32 %r0, %r0, 1;
    setp.lt.u32 %p0, %r0, 100000;
    @%p0 bra again;
    st.global.u32 [%out], %r0;
  )",
               100000, {1, 1, 1});
  expectResult(R"(
    mov.u32 %r0, 0;
    st.volatile.shared.u32 [tile], %r0;
  again:
    ld.volatile.shared.u32 %r0, [tile];
    add.u32 %r0, %r0, 1;
    st.volatile.shared.u32 [tile], %r0;
    setp.lt.u32 %p0, %r0, 100000;
    @%p0 bra again;
    st.global.u32 [%out], %r0;
  )",
               100000, {1, 1, 1});
  expectResult(R"(
    mov.u64 %x0, %clock64;
  again:
    mov.u64 %x1, %clock64;
    sub.u64 %x1, %x1, %x0;
    setp.lt.u64 %p0, %x1, 500000;
    @%p0 bra again;
    mov.u32 %r0, 1;
    st.global.u32 [%out], %r0;
  )",
               1, {1, 1, 1});
}

TEST(LoopWatch, LanesThatCountAreSeenBesideThoseThatDoNot) {
  // Lane 31 alone changes, by an addition with carry.
  expectResult(R"(
    setp.eq.u32 %p1, %t, 31;
    selp.u32 %r3, 1, 0, %p1;
    mov.u32 %r0, 0;
    mov.u32 %r1, 0;
  again:
    add.cc.u32 %r0, %r0, %r3;
    addc.u32 %r1, %r1, 0;
    setp.lt.u32 %p0, %r0, 100000;
    vote.sync.all.pred %p0, %p0, 0xffffffff;
    @%p0 bra again;
    st.global.u32 [%out], 5;
  )",
               5);
}

TEST(LoopWatch, WarpsThatMeetAtABarrierForEver) {
  std::string finding = findingOf(R"(
    mov.u32 %r1, 0;
    st.volatile.shared.u32 [tile], %r1;
  again:
    bar.sync 0;
    ld.volatile.shared.u32 %r0, [tile];
    setp.eq.u32 %p0, %r0, 0;
    @%p0 bra again;
  )",
                                  {96, 1, 1});
  expectContains(finding, "endless-loop: the loop of PTX:");
  expectContains(finding, "so is everything that it reads at PTX:");
  expectContains(finding,
                 "and all warps that are left go round like that, or wait");
}

TEST(LoopWatch, WarpsThatMeetAtAnMbarrierForEver) {
  std::string finding = findingOf(R"(
    mov.u32 %r1, 0;
    mov.u32 %r2, 0;
    st.volatile.shared.u32 [tile], %r1;
    setp.eq.u32 %p1, %t, 0;
    @%p1 mbarrier.init.shared.b64 [barrier], 64;
    bar.sync 0;
  again:
    mbarrier.arrive.shared::cta.b64 _, [barrier];
  wait:
    mbarrier.try_wait.parity.shared::cta.b64 %p2, [barrier], %r2;
    @!%p2 bra wait;
    xor.b32 %r2, %r2, 1;
    ld.volatile.shared.u32 %r0, [tile];
    setp.eq.u32 %p0, %r0, 0;
    @%p0 bra again;
  )",
                                  {64, 1, 1});
  expectContains(finding, "endless-loop: the loop of PTX:");
}

TEST(LoopWatch, ALoopWithABarrierEndsWhenItsTimeHasCome) {
  // All the others read the same for as long as warp 0 counts.
  expectResult(R"(
    mov.u32 %r1, 0;
    mov.u32 %r2, 0;
    st.volatile.shared.u32 [tile], %r1;
  again:
    bar.sync 0;
    setp.lt.u32 %p1, %t, 32;
    @!%p1 bra read;
    add.u32 %r2, %r2, 1;
    setp.eq.u32 %p2, %r2, 90000;
    mov.u32 %r3, 1;
    @%p2 st.volatile.shared.u32 [tile], %r3;
  read:
    ld.volatile.shared.u32 %r0, [tile];
    bar.sync 0;
    setp.eq.u32 %p0, %r0, 0;
    @%p0 bra again;
    st.volatile.global.u32 [%out], 7;
  )",
               7, {64, 1, 1});
}

TEST(LoopWatch, ArrivalsThatCompleteAPhaseInTheEnd) {
  expectResult(R"(
    mbarrier.init.shared.b64 [barrier], 300000;
  again:
    mbarrier.arrive.shared::cta.b64 _, [barrier];
    mbarrier.test_wait.parity.shared::cta.b64 %p1, [barrier], 0;
    @!%p1 bra again;
    st.volatile.global.u32 [%out], 7;
  )",
               7, {1, 1, 1});
}

TEST(LoopWatch, WarpsThatMissEachOtherByTheLengthOfTheirTurns) {
  // Warp 0 has a loop of eight instructions: after a turn of 512 nobody sees
  // the one that it writes between two zeros.
  expectResult(R"(
    mov.u32 %r1, 1;
    mov.u32 %r2, 0;
    st.volatile.shared.u32 [tile], %r2;
    st.volatile.shared.u32 [tile+4], %r2;
    bar.sync 0;
    setp.ge.u32 %p0, %t, 32;
    @%p0 bra other;
  again:
    st.volatile.shared.u32 [tile], %r1;
    st.volatile.shared.u32 [tile], %r2;
    ld.volatile.shared.u32 %r3, [tile+4];
    add.u32 %r4, %r2, 1;
    add.u32 %r4, %r2, 1;
    add.u32 %r4, %r2, 1;
    setp.eq.u32 %p1, %r3, 0;
    @%p1 bra again;
    bra done;
  other:
    ld.volatile.shared.u32 %r3, [tile];
    setp.eq.u32 %p1, %r3, 0;
    @%p1 bra other;
    st.volatile.shared.u32 [tile+4], %r1;
    st.volatile.global.u32 [%out], 7;
  done:
    bar.sync 0;
  )",
               7, {64, 1, 1});
}

TEST(LoopWatch, ACopyThatWasPutOff) {
  expectResult(R"(
    mov.u32 %r1, 1;
    mov.u32 %r2, 0;
    mbarrier.init.shared.b64 [barrier], 1;
    cp.async.ca.shared.global [tile], [%in], 4;
    cp.async.mbarrier.arrive.noinc.shared.b64 [barrier];
  again:
    st.volatile.shared.u32 [tile+64], %r1;
    st.volatile.shared.u32 [tile+64], %r2;
    mbarrier.test_wait.parity.shared::cta.b64 %p1, [barrier], 0;
    @!%p1 bra again;
    st.volatile.global.u32 [%out], 7;
  )",
               7, {1, 1, 1});
}

TEST(LoopWatch, AWaitWhoseTimeIsUp) {
  // Warp 1 asks three times and then lets warp 0 go, which goes round.
  expectResult(R"(
    mov.u32 %r1, 1;
    mov.u32 %r2, 0;
    st.volatile.shared.u32 [tile], %r2;
    setp.eq.u32 %p1, %t, 0;
    @%p1 mbarrier.init.shared.b64 [barrier], 1;
    bar.sync 0;
    setp.ge.u32 %p0, %t, 32;
    @%p0 bra other;
  again:
    st.volatile.shared.u32 [tile+4], %r1;
    st.volatile.shared.u32 [tile+4], %r2;
    ld.volatile.shared.u32 %r3, [tile];
    setp.eq.u32 %p1, %r3, 0;
    @%p1 bra again;
    st.volatile.global.u32 [%out], 7;
    bra done;
  other:
    mbarrier.try_wait.parity.shared::cta.b64 %p2, [barrier], 0;
    @%p2 bra done;
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p0, %r2, 3;
    @%p0 bra other;
    st.volatile.shared.u32 [tile], %r1;
  done:
    bar.sync 0;
  )",
               7, {64, 1, 1}, {1, 1, 1}, kOrderly);
}

TEST(LoopWatch, LanesThatWaitForTheirPartners) {
  // Half of warp 1 waits where its lanes meet, until it has had enough.
  std::string round;
  for (int i = 0; i < 16; ++i)
    round += "add.u32 %r4, %r2, 1;\n";
  expectResult(std::string(R"(
    mov.u32 %r1, 1;
    mov.u32 %r2, 0;
    st.volatile.shared.u32 [tile], %r2;
    st.volatile.shared.u32 [tile+4], %r2;
    bar.sync 0;
    setp.ge.u32 %p0, %t, 32;
    @%p0 bra other;
  again:
    st.volatile.shared.u32 [tile+8], %r1;
    st.volatile.shared.u32 [tile+8], %r2;
    ld.volatile.shared.u32 %r3, [tile+4];
    setp.eq.u32 %p1, %r3, 0;
    @%p1 bra again;
    st.volatile.shared.u32 [tile], %r1;
    st.volatile.global.u32 [%out], 7;
    bra done;
  other:
    setp.ge.u32 %p1, %t, 48;
    @%p1 bra meet;
  wait: // its rounds are long, or it would take long
)") + round + R"(
    ld.volatile.shared.u32 %r3, [tile];
    setp.eq.u32 %p1, %r3, 0;
    @%p1 bra wait;
  meet:
    st.volatile.shared.u32 [tile+4], %r1;
  done:
    bar.sync 0;
  )",
               7, {64, 1, 1}, {1, 1, 1}, kOrderly);
}

TEST(LoopWatch, ALoopWithoutAWayOut) {
  std::string finding = findingOf(R"(
    mov.u32 %r0, 0;
  again:
    add.u32 %r0, %r0, 1;
    st.volatile.shared.u32 [tile], %r0;
    bar.sync 0;
    bra again;
  )",
                                  {64, 1, 1});
  expectContains(finding, "endless-loop: the loop of PTX:");
  expectContains(finding, " has no way out: no instruction that ends a thread "
                          "can be reached from it: thread 0 of CTA (0, 0, 0) "
                          "and 31 more of its warp");
}

} // namespace kiln::sim
