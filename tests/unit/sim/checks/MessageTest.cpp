// Message: what a finding tells its reader beside the defect: whom a barrier
// could hear from, which phase a warp has seen, what is missing.
#include "support/text/Demangle.h"
#include "unit/sim/RunKernel.h"

#include <algorithm>

namespace kiln::sim {

/// All findings of a kernel by 64 threads, a line for each.
static std::string findingsOf(const std::string &body) {
  RunKernel run(body);
  run.config.block = {64, 1, 1};
  run.input(counting<std::uint32_t>(2048));
  run.output(std::vector<std::uint32_t>(2048));
  std::string text;
  for (const Finding &finding : run.run().findings)
    text += fmt::format("{}: {}\n", finding.id, finding.message);
  return text;
}

static void expectLacks(const std::string &text, const std::string &part) {
  EXPECT_EQ(text.find(part), std::string::npos) << text;
}

/// Thread 0 initialises `full` and `empty`, for one arrival.
static const std::string kBarriers = R"(
    .shared .align 8 .b64 full;
    .shared .align 8 .b64 empty;
    setp.ne.u32 %p0, %t, 0;
    @%p0 bra ready;
    mbarrier.init.shared.b64 [full], 1;
    mbarrier.init.shared.b64 [empty], 1;
    fence.mbarrier_init.release.cluster;
  ready:
    bar.sync 0;
)";

TEST(Message, ABarrierCouldHearFromThoseWhoReachIt) {
  std::string text = findingsOf(kBarriers + R"(
    @%p0 bra wait;
    mbarrier.arrive.shared.b64 %x0, [full];
    bra wait;
    mbarrier.arrive.shared.b64 %x1, [empty];
  wait:
    mbarrier.try_wait.parity.shared.b64 %p1, [empty], 0;
    @!%p1 bra wait;
)");
  expectContains(text, "no arrival so far; others could come from PTX:");
  std::size_t list = text.find("others could come from ");
  EXPECT_EQ(text.find(',', list), std::string::npos)
      << "the arrival at full is not one: " << text;
  // Nobody has executed any of these; their addresses tell.
  text = findingsOf(kBarriers + R"(
    bra wait;
    mov.u32 %r1, full;
    mbarrier.arrive.shared.b64 %x0, [%r1];
    add.u32 %r2, %r1, 8;
    mbarrier.arrive.shared.b64 %x1, [%r2];
    mbarrier.arrive.shared.b64 %x2, [%r1+8];
    mbarrier.arrive.shared.b64 %x3, [%r2+8];
    add.u32 %r3, %r1, %t;
    mbarrier.arrive.shared.b64 %x3, [%r3];
  wait:
    mbarrier.try_wait.parity.shared.b64 %p1, [empty], 0;
    @!%p1 bra wait;
)");
  list = text.find("others could come from ");
  EXPECT_EQ(std::count(text.begin() + static_cast<std::ptrdiff_t>(list),
                       text.end(), ','),
            2)
      << "two of the four, and one that nobody knows: " << text;
}

TEST(Message, AWrongParityIsTold) {
  expectContains(findingsOf(kBarriers + R"(
    @%p0 bra first;
    mbarrier.arrive.shared.b64 %x0, [full];
  first:
    mbarrier.try_wait.parity.shared.b64 %p1, [full], 0;
    @!%p1 bra first;
    bar.sync 0;
    @%p0 bra second;
    mbarrier.arrive.shared.b64 %x0, [full];
  second:
    mbarrier.try_wait.parity.shared.b64 %p1, [full], 0;
    @!%p1 bra second;
)"),
                 "2 phases are complete. The warp has seen 1 of them and asks "
                 "for phase 2: phase 1 is over, and has the other parity");
}

/// 2048 bytes come, and `expected` are expected.
static std::string copyOf(const std::string &expected,
                          const std::string &wait = "mbarrier.try_wait.parity."
                                                    "shared.b64") {
  return findingsOf(kBarriers + R"(
    @%p0 bra wait;
    mbarrier.arrive.expect_tx.shared.b64 %x0, [full], )" +
                    expected + R"(;
    mov.u32 %r1, full;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes
      [%s], [%in], 2048, [%r1];
  wait:
    )" + wait + R"( %p1, [full], 0;
    @!%p1 bra wait;
    ld.shared.u32 %r2, [%s];
)");
}

TEST(Message, BytesThatAreTooManyAreCounted) {
  EXPECT_EQ(copyOf("2048"), "");
  expectContains(copyOf("1024"),
                 "0 of 1 arrivals are missing and 1024 bytes too many have "
                 "come, 0 phases are complete");
}

TEST(Message, ARelaxedWaitIsNamed) {
  expectContains(copyOf("2048", "mbarrier.try_wait.parity.relaxed.cta.shared."
                                "b64"),
                 "missing: the wait for phase 0 at PTX:");
  expectContains(copyOf("2048", "mbarrier.try_wait.parity.relaxed.cta.shared."
                                "b64"),
                 "is .relaxed, which orders nothing: .acquire there, or a "
                 "fence (fence.acq_rel.cta) behind it");
}

TEST(Message, ACounterWantsAnAtomic) {
  std::string counter = findingsOf(R"(
    and.b32 %r0, %t, 1;
    mul.wide.u32 %x0, %r0, 4;
    add.u64 %x1, %out, %x0;
    ld.global.u32 %r1, [%x1];
    add.u32 %r1, %r1, 1;
    st.global.u32 [%x1], %r1;
)");
  expectContains(counter, "race: this reads");
  expectContains(counter, "race: this writes");
  for (std::size_t at = 0;
       (at = counter.find("race: ", at)) != std::string::npos; ++at)
    expectContains(counter.substr(at, counter.find('\n', at) - at),
                   "missing: an atomic (atom or red) that reads, adds and "
                   "writes at once; else a barrier");
  expectLacks(findingsOf("st.global.u32 [%out], %t;"), "an atomic");
}

TEST(Message, AnAddressIsToldFromItsBuffer) {
  expectContains(findingsOf("ld.global.u32 %r0, [%in+-4];"),
                 ": 4 bytes before in (8192 bytes)");
  expectContains(findingsOf("ld.global.u32 %r0, [%in+8192];"),
                 ": 0 bytes past the end of in (8192 bytes)");
  expectContains(findingsOf("ld.global.u32 %r0, [%in+1000000];"),
                 ": no buffer is near that address");
}

TEST(Message, BytesThatWereNotLoadedAreOneFinding) {
  std::string text = findingsOf(R"(
    shl.b32 %r0, %t, 3;
    add.u32 %r1, %s, %r0;
    cvt.u64.u32 %x0, %r0;
    add.u64 %x1, %out, %x0;
    ld.shared.v2.u32 {%r2, %r3}, [%r1];
    st.global.u32 [%x1], %r2;
    st.global.u32 [%x1+4], %r3;
    add.u32 %r4, %r2, %r3;
    st.global.u32 [%x1+1024], %r4;
)");
  expectContains(text, "uninitialized-store: ");
  expectContains(text, "(byte 0 of tile), which nobody wrote");
  EXPECT_EQ(text.find('\n'), text.size() - 1) << text;
}

TEST(Message, NamesAreAsPeopleWriteThem) {
  EXPECT_EQ(demangle("_Z4gemmPfi"), "gemm(float*, int)");
  EXPECT_EQ(demangle("gemm"), "gemm");
  EXPECT_EQ(demangle("_ZN45_INTERNAL_00653a56_5_w1_cu_fe6bf523_1234567893M114"
                     "loadEi"),
            "M11::load(int)");
  EXPECT_EQ(variableName("_ZN3M114smemE"), "M11::smem");
  EXPECT_EQ(variableName("_ZZ4gemmPfE5front"), "front");
  EXPECT_EQ(variableName("tile"), "tile");
}

} // namespace kiln::sim
