// Junit: a report as JUnit XML, which CI systems read: a test case for each
// launch file, or for each launch where there are none.
#include "check/report/Markup.h"
#include "kiln/check/report.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln {

namespace {
struct TestCase {
  std::string name, kernel;
  double seconds = 0;
  std::vector<const Finding *> findings;
  std::vector<const ReportedComparison *> wrong;
};
} // namespace

static std::vector<TestCase> casesOf(const Report &report) {
  std::vector<TestCase> cases;
  std::map<std::string, std::size_t> known;
  std::map<std::uint64_t, std::size_t> byNumber;
  auto caseOf = [&](const std::string &name) -> TestCase & {
    auto [found, isNew] = known.try_emplace(name, cases.size());
    if (isNew)
      cases.push_back({.name = name});
    return cases[found->second];
  };
  for (const ReportedLaunch &launch : report.launches) {
    TestCase &one = caseOf(launch.file.empty()
                               ? fmt::format("launch {}", launch.number)
                               : launch.file);
    one.kernel = launch.kernel;
    one.seconds += launch.result.time_us * 1e-6;
    byNumber[launch.number] = known[one.name];
  }
  // What no launch has shown: a refusal, results that differ.
  auto placeless = [&]() -> TestCase & {
    return cases.size() == 1 ? cases.front() : caseOf("kiln");
  };
  for (const Finding &finding : report.findings) {
    std::vector<std::size_t> of;
    for (std::uint64_t number : finding.launches)
      if (auto found = byNumber.find(number); found != byNumber.end())
        of.push_back(found->second);
    std::sort(of.begin(), of.end());
    of.erase(std::unique(of.begin(), of.end()), of.end());
    for (std::size_t index : of)
      cases[index].findings.push_back(&finding);
    if (of.empty())
      placeless().findings.push_back(&finding);
  }
  for (const ReportedComparison &comparison : report.comparisons)
    if (comparison.wrong)
      (comparison.file.empty() ? placeless() : caseOf(comparison.file))
          .wrong.push_back(&comparison);
  return cases;
}

std::string Report::to_junit() const {
  std::vector<TestCase> cases = casesOf(*this);
  std::string body;
  std::size_t failures = 0, errors = 0;
  double seconds = 0;
  for (const TestCase &one : cases) {
    std::string inside, output;
    for (const Finding *finding : one.findings) {
      bool isRefused = finding->id == "refused";
      if (finding->grade != Finding::Grade::error && !isRefused) {
        output += finding->to_string() + '\n';
        continue;
      }
      std::string_view message = finding->message;
      inside += fmt::format(
          "      <{0} type=\"{1}\" message=\"{2}\">{3}</{0}>\n",
          isRefused ? "error" : "failure", escaped(finding->id),
          escaped(message.substr(0, message.find('\n'))),
          escaped(finding->to_string()));
    }
    for (const ReportedComparison *wrong : one.wrong)
      inside += fmt::format("      <failure type=\"wrong\" message=\"{} {}: {} "
                            "of {} elements are wrong ({})\"/>\n",
                            escaped(wrong->what), escaped(wrong->name),
                            wrong->wrong, wrong->elements,
                            escaped(wrong->interleaving));
    bool isRefused = std::any_of(
        one.findings.begin(), one.findings.end(),
        [](const Finding *finding) { return finding->id == "refused"; });
    failures += !inside.empty() && !isRefused;
    errors += isRefused;
    seconds += one.seconds;
    if (!output.empty())
      inside += fmt::format("      <system-out>{}</system-out>\n",
                            escaped(output));
    body += fmt::format("    <testcase classname=\"kiln{}{}\" name=\"{}\" "
                        "time=\"{:.3f}\"",
                        one.kernel.empty() ? "" : ".", escaped(one.kernel),
                        escaped(one.name), one.seconds);
    body += inside.empty() ? "/>\n" : ">\n" + inside + "    </testcase>\n";
  }
  std::string counts = fmt::format(
      "tests=\"{}\" failures=\"{}\" errors=\"{}\" time=\"{:.3f}\"",
      cases.size(), failures, errors, seconds);
  return fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                     "<testsuites {0}>\n"
                     "  <testsuite name=\"kiln\" {0}>\n{1}"
                     "  </testsuite>\n</testsuites>\n",
                     counts, body);
}

} // namespace kiln
