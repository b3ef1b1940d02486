// Litmus: what the reader takes and refuses, and what the runner says.
#include "litmus/litmus_test.h"

#include "kiln/base/error.h"
#include "kiln/check/sim.h"

#include <gmock/gmock.h>

namespace kiln::cli {
namespace {

constexpr const char *kPassing = R"(litmus passing
expect forbidden
rule a release and an acquire
global data
global flag = 0
P0 cta 0
  st.weak.global.u32 [data], 1;
  st.release.gpu.global.u32 [flag], 1;
P1 cta 1
  ld.acquire.gpu.global.u32 r0, [flag]; // a comment
  setp.eq.u32 p0, r0, 1;
  @p0 ld.weak.global.u32 r1, [data];
exists P1:r0 == 1 /\ P1:r1 == 0
)";

std::string replaced(std::string text, const std::string &from,
                     const std::string &to) {
  std::size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return text.replace(at, from.size(), to);
}

std::string refusal(const std::string &text) {
  try {
    LitmusTest::parse(text, "a.litmus");
  } catch (const UserError &error) {
    return error.what();
  }
  return "";
}

LitmusResult run(const LitmusTest &test, std::uint64_t count = 6) {
  SimOptions sim;
  sim.device = sim_device_for(test.ptx(false));
  ExploreOptions options{.sim = sim};
  options.interleavings.count = count;
  return run_litmus(*open_sim(sim), test, options);
}

LitmusVerdict verdictOf(const std::string &text) {
  LitmusTest test = LitmusTest::parse(text, "a.litmus");
  return judge(test, run(test));
}

TEST(Litmus, ReadsWhatThereIs) {
  LitmusTest test = LitmusTest::parse(kPassing, "a.litmus");
  EXPECT_EQ(test.name, "passing");
  EXPECT_EQ(test.rule, "a release and an acquire");
  EXPECT_EQ(test.expectation, LitmusExpectation::forbidden);
  ASSERT_EQ(test.threads.size(), 2u);
  EXPECT_EQ(test.threads[1].cta, 1);
  EXPECT_EQ(test.threads[1].warp, 1);
  EXPECT_EQ(test.ctas, 2);
  EXPECT_EQ(test.to_string({1, 0}), "P1:r0=1 P1:r1=0");
  EXPECT_TRUE(test.holds({1, 0}));
  EXPECT_FALSE(test.holds({1, 1}));
  EXPECT_FALSE(test.holds({0, 0}));
}

TEST(Litmus, ReadsConditions) {
  auto holds = [](const std::string &condition,
                  const std::vector<std::uint32_t> &values) {
    std::string text =
        replaced(kPassing, "P1:r0 == 1 /\\ P1:r1 == 0", condition);
    return LitmusTest::parse(text, "a.litmus").holds(values);
  };
  EXPECT_TRUE(holds("data != 0x10", {15}));
  EXPECT_FALSE(holds("data != 0x10", {16}));
  EXPECT_TRUE(holds("~(data == 1 \\/ flag == 1)", {0, 0}));
  EXPECT_FALSE(holds("~(data == 1 \\/ flag == 1)", {0, 1}));
  // /\ binds more than \/.
  EXPECT_TRUE(holds("data == 1 \\/ flag == 1 /\\ data == 2", {1, 0}));
  EXPECT_FALSE(holds("(data == 1 \\/ flag == 1) /\\ data == 2", {1, 0}));
}

TEST(Litmus, SaysWhatIsWrong) {
  auto with = [](const std::string &from, const std::string &to) {
    return refusal(replaced(kPassing, from, to));
  };
  EXPECT_EQ(with("litmus passing", "test passing"),
            "a.litmus:1: the first line says `litmus NAME`, not 'test "
            "passing'");
  EXPECT_EQ(with("expect forbidden", "expect never"),
            "a.litmus:2: 'never' is not a valid expectation; expected allowed, "
            "forbidden or undefined");
  EXPECT_EQ(with("global data", "globl data"),
            "a.litmus:4: 'globl' begins no line of a litmus test; expected "
            "litmus, target, rule, expect, finding, observed, cluster, global, "
            "shared, mbarrier, a thread (P0) or exists");
  EXPECT_EQ(with("global data", "global data 7"),
            "a.litmus:4: 7 bytes are not whole words; a size is a multiple of "
            "4");
  EXPECT_EQ(with("global data", "global data 3"),
            "a.litmus:4: '3' is not a valid size in bytes; expected a number "
            "from 4 to 16384");
  EXPECT_EQ(with("global flag", "global data"),
            "a.litmus:5: there is a variable data already");
  EXPECT_EQ(with("global flag", "global r1"),
            "a.litmus:5: r1 is a register of every thread; give the variable "
            "another name");
  EXPECT_EQ(with("P1 cta 1", "P2 cta 1"),
            "a.litmus:9: threads are called P0, P1, ... in their order; "
            "expected P1, not P2");
  EXPECT_EQ(with("P1 cta 1", "P1 cta 0 warp 0"),
            "a.litmus:9: P1 is in warp 0 of CTA 0, where P0 is");
  EXPECT_EQ(with("P1 cta 1", "P1 cta 9"),
            "a.litmus:9: '9' is not a valid CTA; expected a number from 0 to "
            "7");
  EXPECT_EQ(with("P1:r1 == 0", "P1:r9 == 0"),
            "a.litmus:13: the condition names P1:r9; the registers that it can "
            "see are r0 to r7");
  EXPECT_EQ(with("P1:r1 == 0", "P4:r1 == 0"),
            "a.litmus:13: the condition names P4, and there is no such thread");
  EXPECT_EQ(with("P1:r1 == 0", "date == 0"),
            "a.litmus:13: the condition names date; expected a variable of "
            "global or shared memory, or a register as P0:r0");
  EXPECT_EQ(with("P1:r1 == 0", "P1:r1 < 2"),
            "a.litmus:13: the condition cannot be read from '< 2' on; "
            "expected comparisons as P0:r0 == 1 or x != 2, with ~, /\\, \\/ "
            "and parentheses");
  EXPECT_EQ(with("expect forbidden\n", ""),
            "a.litmus: the test has no line `expect allowed`, `expect "
            "forbidden` or `expect undefined`");
  EXPECT_EQ(with("expect forbidden", "expect undefined"),
            "a.litmus: a test whose outcome is undefined names the findings of "
            "which the simulator reports one: `finding race`");
  EXPECT_THAT(refusal(""), testing::HasSubstr("its first line says"));
}

TEST(Litmus, JudgesWhatWasSeen) {
  EXPECT_EQ(verdictOf(kPassing), LitmusVerdict::agrees);
  // Both have seen the flag and the data.
  std::string seen =
      replaced(kPassing, "P1:r0 == 1 /\\ P1:r1 == 0", "P1:r0 == 1");
  EXPECT_EQ(verdictOf(seen), LitmusVerdict::forbidden_seen);
  EXPECT_EQ(verdictOf(replaced(seen, "forbidden", "allowed")),
            LitmusVerdict::agrees);
  EXPECT_EQ(verdictOf(replaced(kPassing, "forbidden", "allowed")),
            LitmusVerdict::stronger);
  std::string racy = replaced(kPassing, "st.release.gpu", "st.relaxed.gpu");
  EXPECT_EQ(verdictOf(racy), LitmusVerdict::finding_unexpected);
  racy = replaced(racy, "expect forbidden", "expect undefined\nfinding race");
  EXPECT_EQ(verdictOf(racy), LitmusVerdict::agrees);
  EXPECT_EQ(verdictOf(replaced(kPassing, "expect forbidden",
                               "expect undefined\nfinding race")),
            LitmusVerdict::finding_missing);
}

TEST(Litmus, SeesSharedVariablesOfWholeWarps) {
  LitmusTest test = LitmusTest::parse(R"(litmus shared
expect forbidden
shared x
shared big 256 = 7
P0 all
  @lead st.shared.u32 [x], 3;
  bar.sync 1, 64;
P1 all
  bar.sync 1, 64;
  @lead ld.shared.u32 r0, [x];
  @lead ld.shared.u32 r1, [big+252];
exists x != 3 \/ big != 7 \/ P1:r0 != 3 \/ P1:r1 != 7
)",
                                      "a.litmus");
  LitmusResult result = run(test);
  EXPECT_EQ(judge(test, result), LitmusVerdict::agrees);
  ASSERT_EQ(result.outcomes.size(), 1u);
  EXPECT_EQ(test.to_string(result.outcomes.begin()->first),
            "x=3 big=7 P1:r0=3 P1:r1=7");
}

} // namespace
} // namespace kiln::cli
