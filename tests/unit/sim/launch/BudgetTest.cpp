// Budget: what a stranger's kernel may take, in time, memory and findings.
#include "kiln/check/options.h"
#include "kiln/check/report.h"
#include "support/limits/Budget.h"
#include "unit/sim/RunKernel.h"

#include <gmock/gmock.h>

#include <chrono>
#include <cmath>
#include <limits>

namespace kiln::sim {

using testing::HasSubstr;

static const char *const kHead = R"(.version 8.6
.target sm_100a
.address_size 64
)";

static double secondsOf(const std::function<void()> &work) {
  auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

/// What is thrown; empty: nothing.
template <typename Work> static std::string refusal(const Work &work) {
  try {
    work();
  } catch (const Error &error) {
    return error.message();
  }
  return "";
}

// As many CTAs as make two threads of the host work.
TEST(Budget, AnMbarrierThatNeverWasHasNoAgent) {
  RunKernel run(
      "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 "
      "[%bar];\n",
      "sm_100a");
  run.config.device = DeviceDescription::b200();
  run.config.grid = {64, 1, 1};
  run.config.threads = 2;
  run.config.allow = {"mbarrier-uninitialized"};
  for (int i = 0; i < 10; ++i)
    EXPECT_TRUE(run.run().ok());
  run.config.allow = {};
  EXPECT_EQ(run.run().findings.back().id, "mbarrier-uninitialized");
}

/// Loads of bytes that nobody wrote, each used on a line of its own.
static std::string manyFindings(int count) {
  std::string body;
  for (int i = 0; i < count; ++i)
    body += fmt::format(
        "ld.global.u32 %r1, [%in+{}];\nst.global.u32 [%out], %r1;\n", 4 * i);
  return body;
}

TEST(Budget, FindingsBeyondTheMostAreCounted) {
  for (int threads : {1, 2}) {
    RunKernel run(manyFindings(50));
    run.config.threads = threads;
    run.config.grid = {4, 1, 1};
    run.config.max_findings = 0;
    LaunchResult all = run.run();
    ASSERT_GT(all.findings.size(), 50u);
    EXPECT_EQ(all.findings_left_out, 0u);
    run.config.max_findings = 10;
    LaunchResult some = run.run();
    EXPECT_EQ(some.findings.size(), 10u);
    EXPECT_GE(some.findings_left_out, all.findings.size() - 10);
    EXPECT_THAT(some.to_string(),
                HasSubstr(fmt::format("{} more findings were found and left "
                                      "out (--max-findings)\n",
                                      some.findings_left_out)));
    LaunchResult again = run.run();
    EXPECT_EQ(again.findings_left_out, some.findings_left_out);
    for (std::size_t i = 0; i < 10; ++i)
      EXPECT_EQ(again.findings[i].to_string(), some.findings[i].to_string());
  }
}

TEST(Budget, AnErrorIsKeptRatherThanWarnings) {
  RunKernel run(manyFindings(20) + "st.global.u32 [%in+8192], %t;\n");
  run.config.max_findings = 3;
  LaunchResult result = run.run();
  ASSERT_EQ(result.findings.size(), 3u);
  EXPECT_FALSE(result.ok());
  EXPECT_EQ(result.findings.back().id, "out-of-bounds");
  EXPECT_FALSE(result.is_finished);
}

TEST(Budget, AReportKeepsAsManyAndEveryVerdict) {
  Report report;
  report.max_findings = 2;
  for (unsigned line = 1; line <= 5; ++line)
    report.add({.id = "a", .grade = Finding::Grade::warning, .where = {"f", line}});
  EXPECT_TRUE(report.add({.id = "b", .where = {"f", 9}}));
  EXPECT_EQ(report.findings.size(), 3u);
  EXPECT_EQ(report.findings_left_out, 3u);
  EXPECT_FALSE(report.ok());
  EXPECT_THAT(report.to_text(), HasSubstr("3 more findings were found"));
  EXPECT_THAT(report.to_json(), HasSubstr("\"findings_left_out\": 3"));
}

// 463 KB of it made 107 MB of text.
TEST(Budget, AChainOfInlinedFunctionsHasAnEnd) {
  constexpr int kChain = 5000;
  std::string body = ".loc 1 1 1\n";
  for (int i = 1; i < kChain; ++i)
    body += fmt::format(".loc 2 {} 1, function_name $L__info_string0, "
                        "inlined_at {} {} 1\n",
                        i + 1, i == 1 ? 1 : 2, i);
  std::string ptx = std::string(kHead) +
                    ".visible .entry k()\n{\n.reg .b32 %r<2>;\n.reg .b64 "
                    "%x<2>;\nmov.u64 %x1, 16;\n" +
                    body +
                    "st.global.u32 [%x1], 1;\nret;\n}\n.file 1 \"k.cu\"\n.file "
                    "2 \"h.h\"\n.section .debug_str\n{\n$L__info_string0:\n.b8 "
                    "95,90,53,111,117,116,101,114,105\n.b8 0\n}\n";
  LaunchResult result =
      open_sim({.device = DeviceDescription::b200()})->launch({.ptx = ptx});
  ASSERT_EQ(result.findings.size(), 1u);
  const Finding &finding = result.findings[0];
  EXPECT_EQ(finding.stack.size(), 32u);
  EXPECT_EQ(finding.stack.front().where.line, unsigned(kChain));
  EXPECT_EQ(finding.stack.back().function, "k");
  EXPECT_EQ(finding.where.file, "k.cu");
  EXPECT_LT(finding.to_string().size(), 10000u);
}

TEST(Budget, NamesAndInstructionsAreQuotedShort) {
  std::string name(100000, 'x');
  RunKernel run("mov.u64 %x1, 16;\n.reg .b32 " + name + ";\nst.global.u32 "
                "[%x1], " + name + ";\n");
  std::string text = run.finding();
  EXPECT_LT(text.size(), 10000u);
  EXPECT_THAT(text, HasSubstr(" bytes)]"));
}

TEST(Budget, ReadingPtxTakesNoLongerThanTheLimit) {
  std::string body;
  for (int i = 0; i < 300000; ++i)
    body += "add.u32 %r1, %r1, 1;\n";
  std::string ptx = std::string(kHead) +
                    ".visible .entry k()\n{\n.reg .b32 %r<2>;\nmov.u32 %r1, "
                    "0;\n" +
                    body + "ret;\n}\n";
  auto device = open_sim({.device = DeviceDescription::b200(),
                          .time_limit_s = 0.01});
  std::string_view text = ptx;
  double took = secondsOf([&] {
    EXPECT_THAT(refusal([&] { device->load(std::span(&text, 1)); }),
                testing::MatchesRegex(
                    "the reading of the PTX has taken 0\\..* s and is not "
                    "done; the limit is 0.01 s \\(--time-limit\\)"));
  });
  EXPECT_LT(took, 0.5);
  std::atomic<bool> cancel = true;
  device = open_sim({.device = DeviceDescription::b200(), .cancel = &cancel});
  EXPECT_EQ(refusal([&] { device->load(std::span(&text, 1)); }),
            "the reading of the PTX was interrupted");
  device = open_sim(
      {.device = DeviceDescription::b200(), .memory_limit_bytes = 1});
  EXPECT_THAT(refusal([&] { device->load(std::span(&text, 1)); }),
              testing::MatchesRegex(
                  "the reading of the PTX has taken the memory of this process "
                  "to [0-9]+ bytes; the limit is 1 bytes \\(--memory-limit\\)"));
}

/// Each thread of each CTA stores to a page of its own.
static std::string touchingPages(const char *size) {
  return std::string(kHead) + ".global .align 16 .b8 s[" + size + R"(];
.visible .entry k()
{
.reg .b32 %r<4>;
.reg .b64 %x<4>;
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %tid.x;
mad.lo.u32 %r1, %r1, 32, %r2;
mul.wide.u32 %x1, %r1, 4096;
mov.u64 %x2, s;
add.u64 %x1, %x1, %x2;
st.global.u32 [%x1], %r1;
ret;
}
)";
}

TEST(Budget, ZeroPagesCostNothingUntilTheyAreTouched) {
  if (HostMemory::limit_bytes() < 8'000'000'000)
    GTEST_SKIP() << "this machine has no 8 GB, whoever touches them";
  std::uint64_t before = residentBytes();
  ASSERT_GT(before, 0u);
  std::string ptx = touchingPages("6000000000");
  auto device = open_sim({.device = DeviceDescription::b200(), .threads = 1});
  LaunchResult result = device->launch({.ptx = ptx, .block = {32, 1, 1}});
  EXPECT_TRUE(result.ok()) << result.to_string();
  EXPECT_LT(residentBytes(), before + (64u << 20));
}

// The account against the system's.
TEST(Budget, AMemoryLimitEndsALaunch) {
  std::string ptx = touchingPages("2000000000");
  std::uint64_t limit = residentBytes() + (64u << 20);
  auto device = open_sim({.device = DeviceDescription::b200(),
                          .threads = 2,
                          .memory_limit_bytes = limit});
  LaunchResult result =
      device->launch({.ptx = ptx, .grid = {15000, 1, 1}, .block = {32, 1, 1}});
  ASSERT_FALSE(result.findings.empty());
  const Finding &finding = result.findings.back();
  EXPECT_EQ(finding.id, "memory-limit");
  EXPECT_THAT(finding.message,
              HasSubstr(fmt::format("the limit is {} bytes (--memory-limit)",
                                    limit)));
  EXPECT_FALSE(result.is_finished);
  EXPECT_LT(residentBytes(), limit + (128u << 20));
  EXPECT_THAT(refusal([&] { device->allocate(std::size_t{1} << 30); }),
              HasSubstr("not enough memory for a buffer of 1073741824 bytes: "
                        "the process has "));
}

TEST(Budget, OptionsWithoutAMeaningAreRefused) {
  auto refusedOf = [](auto change) {
    SimOptions options;
    change(options);
    return refusal([&] { open_sim(options); });
  };
  EXPECT_EQ(refusedOf([](SimOptions &o) { o.time_limit_s = std::nan(""); }),
            "SimOptions::time_limit_s is nan; it takes a number of seconds "
            "from 0 on");
  for (double limit : {-1.0, std::numeric_limits<double>::infinity()})
    EXPECT_THAT(refusedOf([&](SimOptions &o) { o.time_limit_s = limit; }),
                HasSubstr("SimOptions::time_limit_s is "));
  for (int threads : {-1, 1025, 2000000000})
    EXPECT_EQ(refusedOf([&](SimOptions &o) { o.threads = threads; }),
              fmt::format("SimOptions::threads is {}; it takes a whole number "
                          "from 0 to 1024",
                          threads));
  for (int sms : {0, -4, 2000000000})
    EXPECT_EQ(refusedOf([&](SimOptions &o) { o.device.sms = sms; }),
              fmt::format("SimOptions::device.sms is {}; it takes a whole "
                          "number from 1 to 4096",
                          sms));
  EXPECT_THAT(refusedOf([](SimOptions &o) { o.registers_at_entry = -1; }),
              HasSubstr("SimOptions::registers_at_entry is -1; "));
  EXPECT_THAT(refusedOf([](SimOptions &o) { o.interleaving = Interleaving(9); }),
              HasSubstr("SimOptions::interleaving is 9; it takes eager, lazy or "
                        "random"));
  EXPECT_THAT(refusedOf([](SimOptions &o) { o.warn = {"nothing"}; }),
              HasSubstr("nothing"));
}

TEST(Budget, OptionsSayBytesWithUnits) {
  CheckSettings settings;
  auto bytesOf = [&](const std::string &text) {
    set_options(settings, "memory_limit=" + text);
    return settings.sim.memory_limit_bytes;
  };
  EXPECT_EQ(bytesOf("0"), 0u);
  EXPECT_EQ(bytesOf("300"), 300u);
  EXPECT_EQ(bytesOf("64K"), 65536u);
  EXPECT_EQ(bytesOf("3M"), 3u << 20);
  EXPECT_EQ(bytesOf("2G"), std::uint64_t{2} << 30);
  for (const char *text : {"", "-1", "2T", "1.5G", "G", "64KB", "99999999999G"})
    EXPECT_EQ(refusal([&] { bytesOf(text); }),
              fmt::format("memory_limit is '{}'; it takes a number of bytes "
                          "from 0 on, with K, M or G after it for units of "
                          "1024",
                          text));
  EXPECT_EQ(refusal([&] { set_options(settings, "time_limit=nan"); }),
            "time_limit is 'nan'; it takes a number of seconds from 0 on");
  set_options(settings, "max_findings=7");
  EXPECT_EQ(settings.sim.max_findings, 7u);
}

// Addresses of blocks are said, and shall be the same whoever comes first.
TEST(Budget, BlocksOfMallocDoNotDependOnThreads) {
  std::string ptx = std::string(kHead) + R"(
.extern .func (.param .b64 r) malloc (.param .b64 n);
.extern .func free (.param .b64 p);
.visible .entry k()
{
.reg .b64 %x<3>;
.param .b64 n;
.param .b64 r;
st.param.b64 [n], 64;
call.uni (r), malloc, (n);
ld.param.b64 %x1, [r];
st.param.b64 [n], %x1;
call.uni free, (n);
st.param.b64 [n], %x1;
call.uni free, (n);
ret;
}
)";
  std::string first;
  for (int threads : {1, 2, 4})
    for (int round = 0; round < 5; ++round) {
      auto device = open_sim(
          {.device = DeviceDescription::b200(), .threads = threads});
      LaunchResult result = device->launch({.ptx = ptx, .grid = {64, 1, 1}});
      ASSERT_FALSE(result.findings.empty());
      std::string text;
      for (const Finding &finding : result.findings)
        text += finding.to_string();
      if (first.empty())
        first = text;
      EXPECT_EQ(text, first) << threads << " threads";
    }
}

} // namespace kiln::sim
