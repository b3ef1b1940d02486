// Protocol: what mbarriers, tensor maps and swizzles must keep to.
#include "sim/machine/memory/TensorMapImage.h"
#include "unit/sim/RunKernel.h"

namespace kiln::sim {

/// Thread 0 alone, with an mbarrier for `count` arrivals.
static std::string afterInit(int count, const std::string &instructions) {
  RunKernel run(fmt::format("mbarrier.init.shared.b64 [%bar], {};\n{}", count,
                            instructions));
  run.config.block = {1, 1, 1};
  return run.finding();
}

TEST(Mbarrier, IsNotInitialisedInTheMidstOfAPhase) {
  RunKernel twice("mbarrier.init.shared.b64 [%bar], 2;"
                  "mbarrier.init.shared.b64 [%bar], 2;");
  twice.config.block = {1, 1, 1};
  LaunchResult result = twice.run();
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].id, "mbarrier-reinitialized");
  EXPECT_EQ(result.findings[0].grade, Finding::Grade::warning);
  expectContains(
      afterInit(2, "mbarrier.init.shared.b64 [%bar], 3;"),
      "mbarrier-reinitialized-in-use: the mbarrier at shared address 5120 "
      "(byte 0 of barrier) is live already; mbarrier.inval ends it. "
      "It waits for 2 of 2 arrivals and 0 bytes in phase 0, and is "
      "made one of 3");
  expectContains(afterInit(2, "mbarrier.arrive.shared.b64 _, [%bar];"
                              "mbarrier.init.shared.b64 [%bar], 2;"),
                 "It waits for 1 of 2 arrivals");
  EXPECT_EQ(afterInit(2, "mbarrier.inval.shared.b64 [%bar];"
                         "mbarrier.init.shared.b64 [%bar], 3;"),
            "");
}

TEST(Mbarrier, KeepsItsCounts) {
  expectContains(afterInit(1, "mbarrier.arrive_drop.shared.b64 _, [%bar];"),
                 "mbarrier-count: arrive_drop takes 1 of the 1 arrivals");
  expectContains(
      afterInit(1, "mbarrier.expect_tx.relaxed.cta.shared.b64 [%bar], "
                   "1048575;"
                   "mbarrier.expect_tx.relaxed.cta.shared.b64 [%bar], 16;"),
      "mbarrier-bytes: the mbarrier at shared address 5120 (byte 0 of barrier) "
      "counts 1048591 "
      "bytes");
}

TEST(Mbarrier, AnotherCtaMustSeeItsInitialisation) {
  // Thread 0 of each CTA arrives at the other one's.
  auto found = [](const std::string &between) {
    RunKernel run("mbarrier.init.shared.b64 [%bar], 1;" + between +
                  "mov.u32 %r1, %cluster_ctarank;"
                  "xor.b32 %r1, %r1, 1;"
                  "mapa.shared::cluster.u32 %r2, %bar, %r1;"
                  "mbarrier.arrive.release.cluster.shared::cluster.b64 _, "
                  "[%r2];"
                  "again:"
                  "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 "
                  "%p1, [%bar], 0;"
                  "@!%p1 bra again;"
                  "barrier.cluster.arrive;"
                  "barrier.cluster.wait;");
    run.config.block = {1, 1, 1};
    run.config.grid = {2, 1, 1};
    run.config.cluster = {2, 1, 1};
    LaunchResult result = run.run();
    return result.findings.empty() ? "" : result.findings[0].id;
  };
  std::string fence = "fence.mbarrier_init.release.cluster;";
  std::string barrier = "barrier.cluster.arrive.relaxed;barrier.cluster.wait;";
  EXPECT_EQ(found(fence + barrier), "");
  // A later fence takes nothing away.
  EXPECT_EQ(found(fence + barrier + fence), "");
  EXPECT_EQ(found(barrier + fence), "mbarrier-init-order");
}

TEST(Mbarrier, ACopyMustSeeItsInitialisation) {
  auto found = [](const std::string &between, const std::string &before = "") {
    RunKernel run(before + "mbarrier.init.shared.b64 [%bar], 1;" + between +
                  "mbarrier.arrive.expect_tx.shared.b64 _, [%bar], 64;"
                  "cp.async.bulk.shared::cluster.global."
                  "mbarrier::complete_tx::bytes [%s], [%in], 64, [%bar];"
                  "again:"
                  "mbarrier.try_wait.parity.shared.b64 %p1, [%bar], 0;"
                  "@!%p1 bra again;");
    run.config.block = {1, 1, 1};
    run.input(counting<std::uint32_t>(16));
    LaunchResult result = run.run();
    return result.findings.empty()
               ? ""
               : result.findings[0].id + " " + name(result.findings[0].grade);
  };
  EXPECT_EQ(found(""), "mbarrier-init-fence error");
  EXPECT_EQ(found("bar.sync 0;"), "mbarrier-init-fence-barrier warning");
  EXPECT_EQ(found("fence.mbarrier_init.release.cluster;"), "");
  EXPECT_EQ(found("fence.proxy.async.shared::cta;"), "");
  // A barrier before the initialisation orders nothing behind it.
  EXPECT_EQ(found("", "bar.sync 0;"), "mbarrier-init-fence error");
  EXPECT_EQ(found("bar.sync 0;", "bar.sync 0;"),
            "mbarrier-init-fence-barrier warning");
  EXPECT_EQ(found("", "barrier.cluster.arrive.aligned;"
                      "barrier.cluster.wait.aligned;"),
            "mbarrier-init-fence error");
  EXPECT_EQ(
      found("barrier.cluster.wait.aligned;", "barrier.cluster.arrive.aligned;"),
      "mbarrier-init-fence error")
      << "it arrived before it initialised";
  EXPECT_EQ(found("barrier.cluster.arrive.aligned;"
                  "barrier.cluster.wait.aligned;"),
            "mbarrier-init-fence-barrier warning");
}

TEST(Mbarrier, BytesThatNeverComeAreTold) {
  expectContains(
      afterInit(1, "mbarrier.arrive.expect_tx.shared.b64 _, [%bar], 64;"),
      "mbarrier-bytes-at-exit: CTA (0, 0, 0) ends, and the mbarrier at shared "
      "address "
      "5120 (byte 0 of barrier) still expects 64 bytes in phase 0");
  expectContains(
      afterInit(1, "mbarrier.complete_tx.relaxed.cta.shared.b64 [%bar], 16;"),
      "has got more than announced: 16 bytes in phase 0");
}

TEST(Mbarrier, PhasesMustBeObserved) {
  const std::string arrive = "mbarrier.arrive.shared.b64 _, [%bar];";
  const std::string wait = "mbarrier.test_wait.parity.shared.b64 %p1, [%bar], ";
  expectContains(afterInit(1, arrive + arrive),
                 "mbarrier-unobserved: this arrives in phase 1 of the mbarrier "
                 "at shared address 5120 (byte 0 of barrier), and nobody has "
                 "waited for phase 0");
  // A wait that says no observes nothing.
  expectContains(afterInit(1, arrive + wait + "1;" + arrive),
                 "mbarrier-unobserved");
  EXPECT_EQ(afterInit(1, arrive + wait + "0;" + arrive), "");
}

TEST(Mbarrier, IsWaitedForByItsOwnCta) {
  for (const char *operation :
       {"mbarrier.init.shared::cluster.b64 [%r1], 1;",
        "mbarrier.try_wait.parity.shared::cluster.b64 %p1, [%r1], 0;",
        "mbarrier.inval.shared::cluster.b64 [%r1];"}) {
    RunKernel run("setp.ne.u32 %p0, %t, 0;"
                  "@!%p0 mbarrier.init.shared.b64 [%bar], 1;"
                  "@!%p0 fence.mbarrier_init.release.cluster;"
                  "barrier.cluster.arrive; barrier.cluster.wait;"
                  "mapa.shared::cluster.u32 %r1, %bar, 1;"
                  "setp.eq.u32 %p2, %rank, 0;"
                  "setp.eq.and.u32 %p3, %t, 0, %p2;"
                  "@%p3 " +
                  std::string(operation) +
                  "barrier.cluster.arrive; barrier.cluster.wait;");
    run.config.grid = run.config.cluster = {2, 1, 1};
    expectContains(run.finding(), "mbarrier-address: the mbarrier at shared "
                                  "address 5120 (byte 0 of barrier) "
                                  "belongs to CTA 1 of the cluster");
  }
}

TEST(Mbarrier, ArrivalsThatNobodyAwaitsKeepTheOwner) {
  // CTA 1 arrives at the barrier of CTA 0, which is there in this run; only a
  // cluster barrier behind it says that it always is.
  auto finding = [](const std::string &end) {
    RunKernel run("mbarrier.init.shared.b64 [%bar], 1;"
                  "fence.mbarrier_init.release.cluster;"
                  "barrier.cluster.arrive; barrier.cluster.wait;"
                  "mapa.shared::cluster.u32 %r1, %bar, 0;"
                  "setp.eq.u32 %p0, %rank, 0;"
                  "@%p0 bra done;"
                  "mbarrier.arrive.release.cluster.shared::cluster.b64 _, "
                  "[%r1];"
                  "done:" +
                  end);
    run.config.grid = run.config.cluster = {2, 1, 1};
    run.config.block = {1, 1, 1};
    return run.finding();
  };
  expectContains(
      finding(""),
      "cta-exit-order: this arrives at the mbarrier at shared address "
      "5120 (byte 0 of barrier) of CTA 0 of the cluster, which may "
      "have left the kernel");
  EXPECT_EQ(finding("barrier.cluster.arrive; barrier.cluster.wait;"), "");
  EXPECT_EQ(finding("barrier.cluster.arrive.relaxed; barrier.cluster.wait;"),
            "");
}

TEST(Mbarrier, ALapIsToldInTheLedger) {
  // Warp 0 completes three phases and sees each; warp 1 saw the first one and
  // comes back for the second when it is long over.
  RunKernel run("setp.eq.u32 %p0, %t, 0;"
                "@%p0 mbarrier.init.shared.b64 [%bar], 1;"
                "fence.mbarrier_init.release.cluster;"
                "bar.sync 0;"
                "setp.ge.u32 %p1, %t, 32;"
                "@%p0 mbarrier.arrive.shared.b64 _, [%bar];"
                "first: mbarrier.try_wait.parity.shared.b64 %p2, [%bar], 0;"
                "@!%p2 bra first;"
                "bar.sync 0;"
                "@%p1 bra late;"
                "@%p0 mbarrier.arrive.shared.b64 _, [%bar];"
                "second: mbarrier.try_wait.parity.shared.b64 %p2, [%bar], 1;"
                "@!%p2 bra second;"
                "@%p0 mbarrier.arrive.shared.b64 _, [%bar];"
                "third: mbarrier.try_wait.parity.shared.b64 %p2, [%bar], 0;"
                "@!%p2 bra third;"
                "late: bar.sync 0;"
                "@!%p1 bra done;"
                "again: mbarrier.try_wait.parity.shared.b64 %p2, [%bar], 1;"
                "@!%p2 bra again;"
                "done:");
  run.config.block = {64, 1, 1};
  expectContains(run.finding(),
                 "3 phases are complete. The warp has seen 1 of them: it may "
                 "have come too late for phase 1, which looks like phase 3 "
                 "now");
}

TEST(Wgmma, WarnsOfAnotherSwizzle) {
  // TMA writes 8 x 64 f16 in a swizzle; a wgmma reads them in that of 128.
  auto findings = [](Swizzle swizzle) {
    RunKernel run(
        "setp.ne.u32 %p0, %t, 0;"
        "@!%p0 mbarrier.init.shared.b64 [%bar], 1;"
        "fence.mbarrier_init.release.cluster;"
        "bar.sync 0;"
        "@%p0 bra wait;"
        "mov.b32 %r4, 0;"
        "mbarrier.arrive.expect_tx.shared.b64 _, [%bar], 1024;"
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::"
        "complete_tx::bytes [%s], [%map, {%r4, %r4}], [%bar];"
        "wait: mbarrier.try_wait.parity.shared.b64 %p1, [%bar], 0;"
        "@!%p1 bra wait;"
        "shr.u32 %r5, %s, 4; cvt.u64.u32 %x0, %r5;"
        "or.b64 %x0, %x0, 0x4000004000000000;"
        "mov.b32 %r6, 0;"
        "wgmma.fence.sync.aligned;"
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 "
        "{%f0, %f1, %f2, %f3}, {%r6, %r6, %r6, %r6}, %x0, 0, 1, 1, 0;"
        "wgmma.commit_group.sync.aligned;"
        "wgmma.wait_group.sync.aligned 0;");
    run.config.block = {128, 1, 1};
    run.input(counting<std::uint16_t>(1024));
    TensorMap map;
    map.type = Type::f16;
    map.address = run.inputAddress();
    map.dims = {64, 16};
    map.strides_bytes = {128};
    map.swizzle = swizzle;
    // A box as wide as the swizzle, of 1024 bytes.
    map.box = {swizzle == Swizzle::b128 ? 64u : 32u,
               swizzle == Swizzle::b128 ? 8u : 16u};
    map.element_strides = {1, 1};
    auto image = encode(map);
    std::memcpy(run.config.params.data() + 64, image.data(), image.size());
    return run.finding();
  };
  EXPECT_EQ(findings(Swizzle::b128), "");
  expectContains(findings(Swizzle::b64),
                 "wgmma-swizzle: operand B is read in swizzle 128 and was "
                 "written in swizzle 64 at PTX:");
}

TEST(Wgmma, IsOneOperationOfFourWarps) {
  // Three warps wait for a product that the fourth has not issued: it waits for
  // a flag that they set behind it.
  auto finding = [](bool isHeldBack) {
    RunKernel run(
        "shl.b32 %r7, %t, 4; add.u32 %r7, %r7, %s;"
        "st.shared.v4.b32 [%r7], {0, 0, 0, 0};"
        "fence.proxy.async.shared::cta; bar.sync 0;" +
        fmt::format("setp.lt.u32 %p0, %t, {};", isHeldBack ? 96 : 128) +
        "@%p0 bra product;"
        "spin: ld.volatile.shared.u32 %r1, [%s+1024];"
        "setp.eq.u32 %p1, %r1, 0;"
        "@%p1 bra spin;"
        "product:"
        "shr.u32 %r5, %s, 4; cvt.u64.u32 %x0, %r5;"
        "or.b64 %x0, %x0, 0x1000080000;"
        "mov.b32 %r6, 0;"
        "wgmma.fence.sync.aligned;"
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 "
        "{%f0, %f1, %f2, %f3}, {%r6, %r6, %r6, %r6}, %x0, 0, 1, 1, 0;"
        "wgmma.commit_group.sync.aligned;"
        "wgmma.wait_group.sync.aligned 0;"
        "st.volatile.shared.u32 [%s+1024], 1;");
    run.config.block = {128, 1, 1};
    return run.finding();
  };
  expectContains(finding(true), "a wgmma that not all four warps have issued");
  EXPECT_EQ(finding(false).find("deadlock"), std::string::npos)
      << finding(false);
}

} // namespace kiln::sim
