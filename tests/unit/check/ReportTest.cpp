// Report: merged, compared, and in markup; what pages show of runs is tested in
// tests/page.
#include "kiln/check/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

Finding found(const std::string &id, unsigned line,
              const std::string &instruction) {
  return {.id = id,
          .message = "something",
          .where = {"a.cu", line},
          .ptx_line = static_cast<int>(line),
          .instruction = instruction};
}

Report reportOf(const std::vector<Finding> &findings,
                std::uint64_t number = 0) {
  LaunchResult result;
  result.findings = findings;
  result.instructions = 10;
  Report report;
  report.add({.number = number, .kernel = "k"},
             {.runs = {{.launches = {result}}}, .single_because = ""});
  return report;
}

TEST(Fingerprint, StaysWhenLinesAndRegistersMove) {
  Finding one = found("race", 3, "ld.shared.b32 %r3, [%rd12+16];");
  Finding moved = found("race", 30, "ld.shared.b32 %r4, [%rd2+16];");
  EXPECT_EQ(fingerprint(one), fingerprint(moved));
  for (const char *other :
       {"ld.shared.b64 %r3, [%rd12+16];", "ld.shared.b32 %r3, [%rd12+32];",
        "ld.shared.b32 %f3, [%rd12+16];"})
    EXPECT_NE(fingerprint(one), fingerprint(found("race", 3, other))) << other;
  EXPECT_NE(fingerprint(one),
            fingerprint(found("scope", 3, one.instruction)));
}

TEST(Fingerprint, OfSarifIsDifferentForEachFinding) {
  Report report = reportOf({found("race", 3, "st %r1;"),
                            found("race", 7, "st %r2;")});
  ASSERT_EQ(report.findings.size(), 2u);
  std::string sarif = report.to_sarif();
  EXPECT_THAT(sarif, HasSubstr(fingerprint(report.findings[0]) + ":1"));
  EXPECT_THAT(sarif, HasSubstr(fingerprint(report.findings[0]) + ":2"));
}

TEST(ReportComparison, SaysWhatCameWentAndChanged) {
  Finding kept = found("race", 3, "st.shared.b32 [%r1], %r2;");
  Finding gone = found("deadlock", 5, "bar.sync 0;");
  Finding graver = found("scope", 9, "ld.b32 %r1, [%r2];");
  graver.grade = Finding::Grade::warning;
  Report before = reportOf({kept, gone, graver});
  kept.where.line = 4;
  graver.grade = Finding::Grade::error;
  Finding fresh = found("proxy-fence", 6, "st.b32 [%r1], 0;");
  fresh.grade = Finding::Grade::warning;
  Report after = reportOf({kept, graver, fresh});

  ReportComparison seen = compare_reports(before, after);
  ASSERT_THAT(seen.came, ElementsAre(&after.findings[2]));
  ASSERT_THAT(seen.went, ElementsAre(&before.findings[1]));
  ASSERT_EQ(seen.changed.size(), 1u);
  EXPECT_EQ(seen.changed[0].what, "its grade was warning and is error");
  EXPECT_EQ(seen.kept, 1u);
  EXPECT_TRUE(seen.has_new_errors()) << "a warning that became one";
  EXPECT_THAT(seen.to_text(), HasSubstr("1 came, 1 went, 1 changed, 1 stayed"));
  EXPECT_FALSE(compare_reports(after, after).has_new_errors());
  EXPECT_THAT(seen.to_html("<a>", "b"), HasSubstr("from &lt;a&gt; to b"));
}

TEST(Report, MergesShardsByTheirNumbers) {
  Report odd = reportOf({found("race", 3, "st;")}, 3);
  Report even = reportOf({found("race", 3, "st;")}, 2);
  odd.merge(even);
  ASSERT_EQ(odd.findings.size(), 1u) << "one defect in two launches";
  EXPECT_THAT(odd.findings[0].launches, ElementsAre(2u, 3u));
  EXPECT_EQ(odd.launches[0].number, 2u);
  EXPECT_EQ(odd.launches[1].number, 3u);
  EXPECT_EQ(odd.total().instructions, 20u);
  EXPECT_EQ(odd.launch_count, 2u);
  // Of another list: behind these.
  odd.merge(reportOf({found("scope", 8, "st;")}, 3));
  EXPECT_EQ(odd.launches[2].number, 6u);
  EXPECT_THAT(odd.findings[1].launches, ElementsAre(6u));
}

TEST(Report, OfAFileNumbersItsLaunches) {
  Report report = reportOf({found("race", 3, "st;")});
  report.add({.id = "order-dependent", .message = "results differ"});
  report.set_file("b.json", 7);
  EXPECT_EQ(report.launches[0].number, 7u);
  EXPECT_EQ(report.launches[0].file, "b.json");
  for (const Finding &finding : report.findings)
    EXPECT_THAT(finding.launches, ElementsAre(7u));
}

TEST(Report, IsTheSameWhenItIsReadAgain) {
  Finding one = found("race", 3, "st.shared.b32 [%r1], %r2;");
  one.cta = {1, 2, 3};
  one.thread = 5;
  one.space = "shared";
  one.address = 1040;
  one.bytes = 4;
  one.missing = "a barrier";
  one.time = 77;
  one.stack = {{"f(int)", {"b.h", 4}}};
  one.other = Finding::Other{"thread 3", {"a.cu", 9}, 12, true, one.stack,
                             one.cta, "tma", 2, 40};
  one.waits = {{.cta = {1, 0, 0}, .last = 31, .kind = "mbarrier",
                .what = "the mbarrier", .on = {0}}};
  std::string json = reportOf({one}).to_json();
  EXPECT_EQ(Report::from_json(json, "a.json").to_json(), json);
}

TEST(Report, InMarkupIsText) {
  Finding bad = found("race", 3, "<b>&\"'");
  bad.message = "</script><script>alert(1)</script>";
  Report report = reportOf({bad});
  std::string page = report.to_html();
  EXPECT_THAT(page, StartsWith("<!doctype html>"));
  EXPECT_THAT(page, Not(HasSubstr("alert(1)</script>")));
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;alert(1)"));
  EXPECT_THAT(report.to_junit(), HasSubstr("&lt;script&gt;alert(1)"));
  EXPECT_THAT(report.to_junit(), HasSubstr("failures=\"1\""));
}

TEST(Report, ShowsDetailsWhereThereIsRoomForThem) {
  EXPECT_TRUE(shows_detail("a.html"));
  EXPECT_TRUE(shows_detail("a.json"));
  for (const char *path : {"", "a.sarif", "a.xml", "a.txt"})
    EXPECT_FALSE(shows_detail(path)) << path;
}

} // namespace
} // namespace kiln
