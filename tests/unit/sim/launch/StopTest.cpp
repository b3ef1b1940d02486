// Stop: a launch that is cancelled or whose time is up says what it found and
// where everyone is.
#include "unit/sim/RunKernel.h"

#include <chrono>
#include <thread>

namespace kiln::sim {

/// Every CTA has a warning; CTAs of an odd number count for minutes.
static const char *kSlow = R"(
    setp.ne.u32 %p0, %t, 0;
    @%p0 bra ready;
    mbarrier.init.shared::cta.b64 [barrier], 1;
    mbarrier.init.shared::cta.b64 [barrier], 1;
  ready:
    mov.u32 %r1, %ctaid.x;
    and.b32 %r1, %r1, 1;
    setp.eq.u32 %p0, %r1, 0;
    @%p0 ret;
    setp.ge.u32 %p0, %t, 32;
    @%p0 bra done;
    mov.u64 %x0, 0;
  again:
    add.u64 %x0, %x0, 1;
    setp.ne.u64 %p1, %x0, 0;
    @%p1 bra again;
  done:
    bar.sync 0;
  )";

static LaunchResult runSlowly(int threads, double limitS,
                              const std::atomic<bool> *cancel = nullptr) {
  RunKernel run(kSlow);
  run.config.grid = {4, 1, 1};
  run.config.block = {64, 1, 1};
  run.config.threads = threads;
  run.config.time_limit_s = limitS;
  run.config.cancel = cancel;
  return run.run();
}

TEST(Stop, ATimeLimitEndsALaunch) {
  for (int threads : {1, 3}) {
    auto start = std::chrono::steady_clock::now();
    LaunchResult result = runSlowly(threads, 0.1);
    EXPECT_LT(std::chrono::steady_clock::now() - start,
              std::chrono::seconds(5));
    EXPECT_FALSE(result.is_finished);
    EXPECT_FALSE(result.ok());
    ASSERT_EQ(result.findings.size(), 2u);
    EXPECT_EQ(result.findings[0].id, "mbarrier-reinitialized");
    const Finding &finding = result.findings[1];
    EXPECT_EQ(finding.id, "time-limit");
    expectContains(finding.message, "the launch has run for 0.");
    expectContains(finding.message,
                   " s and is not done; the limit is 0.1 s (--time-limit); ");
    expectContains(finding.message,
                   " of 4 CTAs are done. Where the others are:\n  CTA (1, 0, "
                   "0), threads 0 to 31: running, at PTX:");
    expectContains(finding.message,
                   "threads 32 to 63: barrier 0: 32 of 64 threads have "
                   "arrived, at PTX:");
    EXPECT_EQ(finding.cta, (Dim3{1, 0, 0}));
  }
}

TEST(Stop, ALaunchIsCancelledFromAnotherThread) {
  std::atomic<bool> cancel = false;
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    cancel = true;
  });
  LaunchResult result = runSlowly(2, 0, &cancel);
  other.join();
  ASSERT_FALSE(result.findings.empty());
  const Finding &last = result.findings.back();
  EXPECT_EQ(last.id, "interrupted");
  EXPECT_FALSE(result.is_finished);
  expectContains(last.message, "the launch was interrupted after 0.");
  expectContains(last.message, "threads 0 to 31: running, at ");
}

TEST(Stop, NothingHasBegun) {
  std::atomic<bool> cancel = true;
  LaunchResult result = runSlowly(2, 0, &cancel);
  ASSERT_EQ(result.findings.size(), 1u);
  expectContains(result.findings[0].message,
                 "the launch was interrupted after 0.0 s; 0 of 4 CTAs are "
                 "done");
}

TEST(Stop, CtasThatTalkToEachOther) {
  RunKernel run(R"(
    mov.u32 %r1, %ctaid.x;
    setp.eq.u32 %p0, %r1, 0;
    @!%p0 bra wait;
  again:
    atom.global.add.u32 %r0, [%out], 1;
    setp.ne.u32 %p2, %r0, 0xffffffff;
    @%p2 bra again;
    bra wait;
  wait:
    ld.acquire.gpu.global.u32 %r2, [%out+4];
    setp.eq.u32 %p1, %r2, 0;
    @%p1 bra wait;
  )");
  run.output(std::vector<std::uint32_t>(8, 0));
  run.config.grid = {3, 1, 1};
  run.config.time_limit_s = 0.1;
  LaunchResult result = run.run();
  ASSERT_EQ(result.findings.size(), 1u);
  const std::string &message = result.findings[0].message;
  EXPECT_EQ(result.findings[0].id, "time-limit");
  expectContains(message, "0 of 3 CTAs are done. Where the others are:\n  CTA "
                          "(0, 0, 0), threads 0 to 31: running, at PTX:");
  expectContains(message, "CTA (2, 0, 0), threads 0 to 31: the 4 bytes at "
                          "global address");
}

} // namespace kiln::sim
