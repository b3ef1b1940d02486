// What kernels of a few instructions cost, computed by hand.
#include "unit/sim/RunKernel.h"
#include "kiln/check/profile.h"

#include <gmock/gmock.h>

namespace kiln::sim {
namespace {

using testing::HasSubstr;

Profile profileOf(RunKernel &run) {
  run.config.profile = true;
  run.config.checks = false;
  LaunchResult result = run.run();
  EXPECT_TRUE(result.is_finished) << result.to_string();
  return result.profile ? *result.profile : Profile();
}

Profile profileOf(const std::string &instructions) {
  RunKernel run(instructions);
  return profileOf(run);
}

/// The first instruction whose text begins so.
ProfiledInstruction find(const Profile &profile, const std::string &begin) {
  for (const ProfiledInstruction &one : profile.instructions)
    if (one.text.starts_with(begin))
      return one;
  ADD_FAILURE() << "no instruction begins with " << begin;
  return {};
}

std::string hintsOf(const Profile &profile) {
  std::string text;
  for (const ProfileHint &hint : hints(profile))
    text += hint.message + "\n";
  return text;
}

/// A load of four bytes by each thread, that far apart.
std::string loadEvery(int bytes, int first = 0) {
  return fmt::format("mul.lo.u32 %r0, %t, {}; cvt.u64.u32 %x0, %r0;"
                     "add.u64 %x0, %in, %x0; ld.global.b32 %r1, [%x0+{}];",
                     bytes, first);
}

TEST(Profiler, CountsSectorsOfCopies) {
  ProfiledInstruction load = find(profileOf(loadEvery(4)), "ld.global");
  EXPECT_EQ(load.counts[Count::global_requests], 1u);
  EXPECT_EQ(load.counts[Count::global_bytes], 128u);
  EXPECT_EQ(load.counts[Count::global_sectors], 4u);
  EXPECT_EQ(load.counts[Count::global_sectors_ideal], 4u);
  EXPECT_EQ(load.access.alignment, 128u);
  EXPECT_EQ(load.access.stride, 4);
  EXPECT_EQ(hintsOf(profileOf(loadEvery(4))), "");

  Profile strided = profileOf(loadEvery(128));
  EXPECT_EQ(find(strided, "ld.global").counts[Count::global_sectors], 32u);
  EXPECT_EQ(hintsOf(strided),
            "uncoalesced: each request moves 32.0 sectors where 4.0 would do; "
            "consecutive lanes are 128 bytes apart; let neighbouring lanes "
            "take neighbouring elements\n");
  Profile shifted = profileOf(loadEvery(4, 4));
  EXPECT_EQ(find(shifted, "ld.global").counts[Count::global_sectors], 5u);
  EXPECT_EQ(hintsOf(shifted),
            "misaligned: requests begin 4 bytes from a multiple of 32 and move "
            "5.0 sectors where 4.0 would do; align the first lane to 32 "
            "bytes\n");
}

TEST(Profiler, CountsWavefrontsOfTransposes) {
  auto store = [](int pitch) {
    return profileOf(fmt::format("mad.lo.u32 %r0, %t, {}, %s;"
                                 "st.shared.b32 [%r0], %t;",
                                 pitch));
  };
  struct {
    int pitch;
    std::uint64_t wavefronts;
  } rows[] = {{4, 1}, {132, 1}, {32, 8}, {128, 32}};
  for (auto [pitch, wavefronts] : rows) {
    Profile profile = store(pitch);
    ProfileCounts counts = find(profile, "st.shared").counts;
    EXPECT_EQ(counts[Count::shared_wavefronts], wavefronts) << pitch;
    EXPECT_EQ(counts[Count::shared_wavefronts_ideal], 1u);
    EXPECT_EQ(hintsOf(profile).empty(), wavefronts == 1) << pitch;
  }
  EXPECT_EQ(hintsOf(store(128)),
            "32-way bank conflict: each request takes 32 wavefronts where 1 "
            "would do; consecutive lanes are 128 bytes apart; pad or swizzle "
            "the rows\n");
}

TEST(Profiler, CountsRowsOfMatricesInEachSwizzle) {
  auto load = [](const std::string &address) {
    return profileOf(address + "add.u32 %r0, %r0, %s;"
                               "ldmatrix.sync.aligned.m8n8.x4.shared.b16 "
                               "{%r1, %r2, %r3, %r4}, [%r0];");
  };
  for (int width : {32, 64, 128}) {
    std::string row = fmt::format("mul.lo.u32 %r0, %t, {};", width);
    std::string swizzle =
        fmt::format("shr.u32 %r5, %r0, 7; and.b32 %r5, %r5, {};"
                    "shl.b32 %r5, %r5, 4; xor.b32 %r0, %r0, %r5;",
                    width / 16 - 1);
    Profile plain = load(row), swizzled = load(row + swizzle);
    EXPECT_EQ(find(plain, "ldmatrix").counts[Count::shared_wavefronts],
              4u * static_cast<unsigned>(width) / 16);
    EXPECT_EQ(find(swizzled, "ldmatrix").counts[Count::shared_wavefronts], 4u);
    EXPECT_THAT(hintsOf(plain),
                HasSubstr(fmt::format("consecutive rows are {} bytes apart",
                                      width)));
    EXPECT_EQ(hintsOf(swizzled), "");
  }
}

TEST(Profiler, CountsWidths) {
  Profile profile = profileOf("mad.lo.u32 %r0, %t, 16, %s;"
                              "ld.shared.v4.b32 {%r1, %r2, %r3, %r4}, [%r0];");
  ProfiledInstruction load = find(profile, "ld.shared.v4");
  EXPECT_EQ(load.counts[Count::shared_bytes], 512u);
  EXPECT_EQ(load.counts[Count::shared_wavefronts], 4u);
  EXPECT_EQ(load.access.bytes, 16u);
  EXPECT_EQ(hintsOf(profile), "");
}

TEST(Profiler, CountsLanesAndBranches) {
  Profile profile = profileOf("setp.lt.u32 %p0, %t, 8; setp.gt.u32 %p1, %t, 99;"
                              "@%p1 add.u32 %r1, %t, 1;"
                              "@%p1 bra past; past:"
                              "@%p0 bra few; add.u32 %r0, %t, 2; few:");
  ProfileCounts skipped = find(profile, "@%p1 add").counts;
  EXPECT_EQ(skipped[Count::executions], 1u);
  EXPECT_EQ(skipped[Count::threads], 32u);
  EXPECT_EQ(skipped[Count::threads_on], 0u);
  EXPECT_EQ(find(profile, "add.u32 %r0").counts[Count::threads], 24u);
  EXPECT_EQ(find(profile, "@%p0 bra").counts[Count::divergent_branches], 1u);
  EXPECT_EQ(find(profile, "@%p1 bra").counts[Count::branches], 1u);
  EXPECT_EQ(find(profile, "@%p1 bra").counts[Count::divergent_branches], 0u);
}

TEST(Profiler, CountsAtomicsThatCollide) {
  Profile profile = profileOf("red.global.add.u32 [%out], 1;");
  ProfileCounts counts = find(profile, "red.global").counts;
  EXPECT_EQ(counts[Count::atomic_lanes], 32u);
  EXPECT_EQ(counts[Count::atomic_collisions], 31u);
  EXPECT_EQ(counts[Count::global_sectors], 1u);
  EXPECT_EQ(hintsOf(profile),
            "all lanes of a request (32.0 on average) update one address; "
            "reduce in the warp first and let one lane do it\n");
}

TEST(Profiler, CountsOperations) {
  Profile profile = profileOf(
      "mov.f32 %f0, 0f3F800000; add.f32 %f1, %f0, %f0;"
      "fma.rn.f32 %f2, %f0, %f0, %f1; add.u32 %r0, %t, 1;"
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3},"
      "{%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f0, %f1, %f2, %f3};");
  EXPECT_EQ(find(profile, "add.f32").counts[Count::operations], 32u);
  EXPECT_EQ(find(profile, "fma").counts[Count::operations], 64u);
  EXPECT_EQ(find(profile, "add.u32").counts[Count::operations], 0u);
  std::uint64_t products = 2 * 16 * 8 * 16;
  EXPECT_EQ(find(profile, "mma").counts[Count::tensor_operations], products);
  EXPECT_EQ(profile.operations(), 96 + products);
  EXPECT_EQ(profile.tensor().at("m16n8k16.f32.f16.f16.f32"), 1u);
}

TEST(Profiler, CountsLocalMemory) {
  Profile profile = profileOf(".local .align 4 .b8 frame[64];"
                              "st.local.b32 [frame+8], %t;");
  ProfileCounts counts = find(profile, "st.local").counts;
  EXPECT_EQ(counts[Count::local_bytes], 128u);
  EXPECT_EQ(counts[Count::local_sectors], 4u);
}

TEST(Profiler, CountsAnInstructionThatWaitsOnce) {
  RunKernel run("setp.lt.u32 %p0, %t, 32; @%p0 bra early;"
                "mov.u32 %r0, 0; more: add.u32 %r0, %r0, 1;"
                "setp.lt.u32 %p1, %r0, 50; @%p1 bra more;"
                "early: bar.sync 0;");
  run.config.block = {64, 1, 1};
  ProfileCounts counts = find(profileOf(run), "bar.sync").counts;
  EXPECT_EQ(counts[Count::executions], 2u);
  EXPECT_EQ(counts[Count::waits], 1u);
  // The other warp executes two instructions first, and three in each round.
  EXPECT_NEAR(double(counts[Count::wait_time]), 1 + 3 * 50, 3);
}

TEST(Profiler, KnowsWhatIsReadAgain) {
  Profile profile =
      profileOf(loadEvery(4) + "ld.global.b32 %r2, [%in]; "
                               "st.global.b32 [%out], %r2;");
  EXPECT_EQ(profile.traffic.requested_read, 32u * 5);
  EXPECT_EQ(profile.traffic.read_once, 32u * 3);
  EXPECT_EQ(profile.traffic.read_again, 32u);
  EXPECT_EQ(profile.traffic.written, 32u);
}

TEST(Profiler, CountsMulticast) {
  RunKernel run("setp.ne.u32 %p1, %t, 0; @%p1 bra ready;"
                "mbarrier.init.shared.b64 [%bar], 1;"
                "fence.mbarrier_init.release.cluster;"
                "mbarrier.arrive.expect_tx.shared.b64 _, [%bar], 64;"
                "ready: barrier.cluster.arrive; barrier.cluster.wait;"
                "setp.ne.u32 %p2, %rank, 0; or.pred %p1, %p1, %p2;"
                "@%p1 bra wait;"
                ".reg .b16 %h; mov.u32 %r3, 3; cvt.u16.u32 %h, %r3;"
                "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::"
                "bytes.multicast::cluster [%s], [%in], 64, [%bar], %h;"
                "wait: mbarrier.try_wait.parity.shared.b64 %p3, [%bar], 0;"
                "@!%p3 bra wait;");
  run.config.grid = run.config.cluster = {2, 1, 1};
  ProfileCounts counts = find(profileOf(run), "cp.async.bulk").counts;
  EXPECT_EQ(counts[Count::copies], 1u);
  EXPECT_EQ(counts[Count::copy_targets], 2u);
  EXPECT_EQ(counts[Count::copy_bytes], 64u);
  EXPECT_EQ(counts[Count::copy_sectors], 2u);
  EXPECT_EQ(counts[Count::global_requests], 0u);
}

TEST(Profiler, CountsTheSameOnAnyNumberOfThreads) {
  auto run = [](int threads) {
    RunKernel kernel(loadEvery(4));
    kernel.config.grid = {16, 1, 1};
    kernel.config.threads = threads;
    return profileOf(kernel);
  };
  Profile one = run(1), four = run(4);
  EXPECT_EQ(one.total(), four.total());
  EXPECT_EQ(one.total()[Count::global_sectors], 64u);
  EXPECT_EQ(one.traffic.read_again, 128u); // by all CTAs
  EXPECT_EQ(four.traffic.read_again, 128u);
}

TEST(Profiler, CountsThroughChecks) {
  // The race detector hears of a load where its value is used.
  std::string masked = loadEvery(4) + "setp.lt.u32 %p0, %t, 8;"
                                      "selp.b32 %r2, %r1, 0, %p0;";
  RunKernel checked(masked);
  checked.input(std::vector<std::uint32_t>(32));
  checked.config.profile = true;
  LaunchResult result = checked.run();
  ASSERT_TRUE(result.profile);
  EXPECT_EQ(find(*result.profile, "ld.global").counts[Count::global_sectors],
            4u);
}

} // namespace
} // namespace kiln::sim
