// Barrier: threads that arrive at barriers and go on, or leave, while others
// are still on their way.
#include "sim/report/Endings.h"
#include "unit/sim/RunKernel.h"

namespace kiln::sim {

/// Run under every order without a finding, the random one with some seeds;
/// `check` looks at what came of it.
template <typename Check>
static void inEveryOrder(const std::string &body, Dim3 grid, Dim3 block,
                         Dim3 cluster, int seeds, Check &&check) {
  for (Interleaving order : kOrders)
    for (int seed = 0; seed < (order == Interleaving::random ? seeds : 1); ++seed) {
      RunKernel run(body);
      run.config.grid = grid;
      run.config.block = block;
      run.config.cluster = cluster;
      run.config.seed = static_cast<std::uint64_t>(seed);
      run.output(std::vector<std::uint32_t>(RunKernel::kBufferBytes / 4, 0))
          .runCleanly(order);
      check(run);
      if (testing::Test::HasFailure())
        return;
    }
}

TEST(Barrier, WhoArrivesAtTheClusterBarrierAndLeavesIsCountedOnce) {
  // Warp 1 writes s long after warps 2 and 3 of both CTAs have arrived and
  // left; the others must wait for it.
  inEveryOrder(R"(
    shr.u32 %r0, %t, 5;
    setp.ne.u32 %p0, %r0, 1;
    @%p0 bra arrive;
    mov.u32 %r1, 0;
  slow:
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p1, %r1, 400;
    @%p1 bra slow;
    setp.eq.u32 %p1, %t, 32;
    @%p1 st.shared.u32 [tile], %r1;
  arrive:
    barrier.cluster.arrive.release.aligned;
    setp.ge.u32 %p0, %r0, 2;
    @%p0 ret;
    barrier.cluster.wait.acquire.aligned;
    setp.ne.u32 %p0, %t, 0;
    @%p0 ret;
    ld.shared.u32 %r2, [tile];
    mul.wide.u32 %x0, %rank, 4;
    add.u64 %x0, %out, %x0;
    st.global.u32 [%x0], %r2;
  )",
               {2, 1, 1}, {128, 1, 1}, {2, 1, 1}, 20, [](RunKernel &run) {
                 EXPECT_EQ(run.result<std::uint32_t>(0), 400u);
                 EXPECT_EQ(run.result<std::uint32_t>(1), 400u);
               });
}

TEST(Barrier, LanesOfAWarpPassTheClusterBarrierOneAfterTheOther) {
  // One half of the warp is at the second round while the other has not seen
  // the end of the first.
  inEveryOrder(R"(
    setp.lt.u32 %p0, %t, 16;
    @%p0 bra low;
    barrier.cluster.arrive.release;
    barrier.cluster.wait.acquire;
    barrier.cluster.arrive.release;
    barrier.cluster.wait.acquire;
    bra done;
  low:
    barrier.cluster.arrive.release;
    barrier.cluster.wait.acquire;
    setp.eq.u32 %p1, %t, 0;
    @%p1 st.shared.u32 [tile], 7;
    barrier.cluster.arrive.release;
    barrier.cluster.wait.acquire;
  done:
    ld.shared.u32 %r0, [tile];
    st.global.u32 [%out], %r0;
  )",
               {1, 1, 1}, {32, 1, 1}, {1, 1, 1}, 5, [](RunKernel &run) {
                 EXPECT_EQ(run.result<std::uint32_t>(0), 7u);
               });
}

TEST(Barrier, LanesThatWereLetGoMeetTheElectedOneAtABarrier) {
  // A decoupled look-back: thread 0 takes a ticket, spins on the flag of the
  // CTA before and publishes its own; the other lanes of its warp have long
  // been let go to the first barrier, and past it.
  inEveryOrder(R"(
    setp.ne.u32 %p0, %t, 0;
    @%p0 bra meet;
    atom.global.add.u32 %r0, [%out], 1;
    st.shared.u32 [tile], %r0;
    mul.wide.u32 %x0, %r0, 4;
    add.u64 %x0, %out, %x0;
    mov.u32 %r2, 1;
    setp.eq.u32 %p1, %r0, 0;
    @%p1 bra publish;
  again:
    ld.acquire.gpu.global.u32 %r1, [%x0+1020];
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra again;
    add.u32 %r2, %r1, 1;
  publish:
    st.release.gpu.global.u32 [%x0+1024], %r2;
  meet:
    barrier.sync 0;
    bar.sync 0;
    setp.ne.u32 %p0, %t, 40;
    @%p0 ret;
    ld.shared.u32 %r0, [tile];
    mul.wide.u32 %x0, %r0, 4;
    add.u64 %x0, %out, %x0;
    ld.acquire.gpu.global.u32 %r1, [%x0+1024];
    st.global.u32 [%x0+4096], %r1;
  )",
               {40, 1, 1}, {64, 1, 1}, {1, 1, 1}, 20, [](RunKernel &run) {
                 for (std::size_t i = 0; i < 40; ++i)
                   EXPECT_EQ(run.result<std::uint32_t>(1024 + i), i + 1);
               });
}

TEST(Barrier, WhoHandsOnAndWaitsInOneTurnHasMoved) {
  // Two CTAs give a flag back and forth; each answers and waits again at once.
  // A turn may end between what its loop reads and what comes of it.
  inEveryOrder(R"(
    setp.ne.u32 %p0, %t, 0;
    @%p0 ret;
    mov.u32 %r1, %ctaid.x;
  round:
    ld.acquire.gpu.global.u32 %r0, [%out];
    setp.ne.u32 %p1, %r0, %r1;
    @%p1 bra round;
    add.u32 %r0, %r0, 1;
    st.release.gpu.global.u32 [%out], %r0;
    add.u32 %r1, %r1, 2;
    setp.lt.u32 %p1, %r1, 40;
    @%p1 bra round;
  )",
               {2, 1, 1}, {32, 1, 1}, {1, 1, 1}, 50, [](RunKernel &run) {
                 EXPECT_EQ(run.result<std::uint32_t>(0), 40u);
               });
}

TEST(Barrier, RandomTurnsEndAtAtomics) {
  // Two counters, one behind the other: CTAs come to the second in another
  // order than to the first.
  int changed = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    RunKernel run(R"(
      setp.ne.u32 %p0, %t, 0;
      @%p0 ret;
      atom.global.add.u32 %r0, [%out], 1;
      atom.global.add.u32 %r1, [%out+4], 1;
      setp.eq.u32 %p0, %r0, %r1;
      @%p0 ret;
      red.global.add.u32 [%out+8], 1;
    )");
    run.config.grid = {8, 1, 1};
    run.config.seed = seed;
    run.output(std::vector<std::uint32_t>(3, 0)).runCleanly(Interleaving::random);
    changed += run.result<std::uint32_t>(2) > 0;
  }
  EXPECT_GE(changed, 15);
}

TEST(Barrier, ALostTurnIsNoDeadlock) {
  // Nobody waits yet: a ledger of that says nothing of the kernel.
  GlobalMemory memory;
  ptx::Module module = ptx::parse(R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry test()
{
bar.sync 0;
ret;
}
)");
  LaunchConfig config;
  config.block = {32, 1, 1};
  ModuleVariables variables(memory, module, config.device);
  Machine machine(memory, config,
                  decodeEntry(module, module.functions.at(0),
                              variables.symbols(), 0, config.device));
  Cluster cluster(machine, {0, 0, 0}, 0);
  try {
    describeDeadlock(machine, {&cluster});
    ADD_FAILURE() << "a ledger of nothing";
  } catch (const InternalError &error) {
    expectContains(error.what(), "threads 0 to 31 of CTA (0, 0, 0) wait for "
                                 "nothing at PTX:6, and were not run");
    expectContains(error.what(), "This is a defect of Kiln");
  }
}

} // namespace kiln::sim
